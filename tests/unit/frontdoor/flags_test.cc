// Every option of every peer: honoured, rejected, or of no meaning here and said so. The guides' tables are these rows.
#include "frontdoor/peer_flags.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "base/text.h"
#include "cases.h"

namespace phalanx::frontdoor {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct PeerName {
  Peer peer;
  std::string title;  // in the guide
  std::vector<std::string> words;
};
const std::vector<PeerName>& peers() {
  static const std::vector<PeerName> kAll = {
      {Peer::kTorchrun, "torchrun", {"torchrun"}},
      {Peer::kTorchLaunch, "torch.distributed.launch", {"python", "-m", "torch.distributed.launch"}},
      {Peer::kAccelerate, "accelerate launch", {"accelerate", "launch"}},
      {Peer::kDeepSpeed, "deepspeed", {"deepspeed"}},
  };
  return kAll;
}

// A value that the option's own check lets pass.
std::string value_for(const PeerFlag& flag) {
  static const std::map<std::string_view, std::string> kValues = {
      {"role", "default"}, {"numa-binding", "node"}, {"signals-to-handle", "SIGTERM"}, {"launcher", "pdsh"}};
  auto found = kValues.find(flag.name());
  return found == kValues.end() ? "1" : found->second;
}

std::vector<std::string> line_with(const PeerName& peer, const PeerFlag& flag) {
  std::vector<std::string> words = peer.words;
  words.push_back("--" + base::replace_all(flag.name(), "-", "_"));
  if (flag.takes_value) words.push_back(value_for(flag));
  words.push_back("train.py");
  return words;
}

TEST(Flags, WhatIsRejectedIsAnErrorWithAReason) {
  for (const PeerName& peer : peers())
    for (const PeerFlag& flag : flags_of(peer.peer)) {
      if (flag.answer != Answer::kRejected) continue;
      base::Result<Translation> result = translate({{}, line_with(peer, flag)}, World());
      ASSERT_FALSE(result.ok()) << peer.title << " " << flag.name();
      EXPECT_EQ(result.error().cause, flag.why.english) << peer.title << " " << flag.name();
      EXPECT_EQ(base::exit_code(result.error().kind), 2);
    }
}

TEST(Flags, WhatMeansNothingIsSaidOnce) {
  for (const PeerName& peer : peers())
    for (const PeerFlag& flag : flags_of(peer.peer)) {
      if (flag.answer != Answer::kMeaningless) continue;
      base::Result<Translation> result = translate({{}, line_with(peer, flag)}, World());
      ASSERT_TRUE(result.ok()) << peer.title << " " << flag.name() << ": " << result.error().message;
      int said = 0;
      for (const Decision& one : result->decisions) said += one.to.empty() && one.why.english == flag.why.english;
      EXPECT_EQ(said, 1) << peer.title << " " << flag.name();
    }
}

// `name` as a word: not a part of a longer option or variable.
bool names(std::string_view text, const std::string& name) {
  auto part = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'; };
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1))
    if ((at == 0 || !part(text[at - 1])) && (at + name.size() == text.size() || !part(text[at + name.size()]))) return true;
  return false;
}

enum class Written { kOption, kVariable, kKey };

// The first case of the peer's file that has the row and says in its plan what becomes of it.
std::string case_of(const PeerFlag& row, const std::string& file, Written written) {
  static const std::vector<Case> kCases = all_cases();
  std::vector<std::string> spellings;
  const std::string name(row.name()), underscores = base::replace_all(row.name(), "-", "_");
  if (written == Written::kVariable) spellings = {name + "=", name + "-"};
  else if (written == Written::kKey) spellings = {name + ":"};
  else spellings = {"--" + name, "--" + underscores, underscores + ":"};
  for (const Case& one : kCases)
    for (const std::string& spelling : spellings) {
      const bool right_file = one.name.starts_with(file) || one.name.starts_with("notes.txt");
      const std::string word = spelling.ends_with('=') ? spelling.substr(0, spelling.size() - 1) : spelling;
      if (right_file && !one.plan.starts_with("error:") && (names(one.text, word) || one.text.find(spelling) != std::string::npos))
        return one.name;
    }
  return "";
}

struct Table {
  std::string file;  // of the golden cases
  std::vector<PeerFlag> rows;
  Written written = Written::kOption;
};
// In the order of the guide.
std::vector<Table> tables() {
  auto all = [](std::span<const PeerFlag> rows) { return std::vector<PeerFlag>(rows.begin(), rows.end()); };
  return {{"torchrun.txt", all(torchrun_flags())},
          {"torchrun.txt", all(variables_of(Peer::kTorchrun)), Written::kVariable},
          {"launch.txt", all(launch_flags())},
          {"accelerate.txt", all(accelerate_flags())},
          {"accelerate.txt", all(accelerate_keys()), Written::kKey},
          {"accelerate.txt", all(variables_of(Peer::kAccelerate)), Written::kVariable},
          {"deepspeed.txt", all(deepspeed_flags())},
          {"deepspeed.txt", all(variables_of(Peer::kDeepSpeed)), Written::kVariable},
          {"llamafactory.txt", all(llamafactory_variables()), Written::kVariable},
          {"python.txt", all(variables_of(Peer::kPython)), Written::kVariable}};
}

// Of what is honoured every option stands in a golden case, as it is typed or as a key of accelerate's file.
TEST(Flags, WhatIsHonouredHasAGoldenCase) {
  for (const Table& table : tables())
    for (const PeerFlag& row : table.rows) {
      if (row.answer != Answer::kHonoured) continue;
      EXPECT_FALSE(row.becomes.empty()) << row.name();
      EXPECT_FALSE(case_of(row, table.file, table.written).empty()) << table.file << " " << row.name();
    }
}

TEST(Flags, VariablesAreAnsweredLikeOptions) {
  for (Peer peer : {Peer::kTorchrun, Peer::kDeepSpeed})
    for (const PeerFlag& row : variables_of(peer)) {
      if (row.answer == Answer::kHonoured) continue;
      const std::string name(row.names);
      const std::string launcher = peer == Peer::kTorchrun ? "torchrun" : "deepspeed";
      World world;
      for (bool in_front : {true, false}) {
        if (!in_front) world.variables[name] = "1";
        base::Result<Translation> result = translate(
            {in_front ? std::vector<std::pair<std::string, std::string>>{{name, "1"}} : std::vector<std::pair<std::string, std::string>>{},
             {launcher, "train.py"}},
            world);
        ASSERT_EQ(result.ok(), row.answer == Answer::kMeaningless) << name;
        if (!result.ok()) {
          EXPECT_EQ(result.error().cause, row.why.english);
          continue;
        }
        int said = 0;
        for (const Decision& one : result->decisions) said += one.to.empty() && one.why.english == row.why.english;
        EXPECT_EQ(said, 1) << name;
        for (const auto& [set, value] : result->environment) EXPECT_NE(set, name);
      }
    }
}

std::string guide_row(const PeerFlag& flag, base::Language language, const Table& table) {
  std::string spelled;
  for (std::string_view one : base::split(flag.names, '|'))
    spelled += fmt::format("{}`{}{}`", spelled.empty() ? "" : ", ",
                           table.written != Written::kOption ? ""
                           : one.size() == 1                 ? "-"
                                                             : "--",
                           one);
  const bool chinese = language == base::Language::kChinese, honoured = flag.answer == Answer::kHonoured;
  const std::string what = honoured ? fmt::format("`{}`", flag.becomes) : std::string(flag.why.in(language));
  const char* answer = honoured                           ? (chinese ? "生效" : "honoured")
                       : flag.answer == Answer::kRejected ? (chinese ? "拒绝" : "rejected")
                                                          : (chinese ? "无意义" : "no meaning");
  std::string test = honoured ? case_of(flag, table.file, table.written) : "";
  if (const std::string own = table.file + ": "; test.starts_with(own)) test.erase(0, own.size());
  return fmt::format("| {} | {} | {} | {} |\n", spelled, answer, what, test);
}

TEST(Flags, TheGuidesHaveEveryRow) {
  for (base::Language language : {base::Language::kEnglish, base::Language::kChinese}) {
    const char* name = language == base::Language::kEnglish ? "front-doors.md" : "front-doors.zh-CN.md";
    const std::string guide = read(std::string(PHALANX_TEST_DATA) + "/../../docs/guides/" + name);
    std::string wanted;
    for (const Table& table : tables()) {
      std::string rows;
      for (const PeerFlag& row : table.rows) rows += guide_row(row, language, table);
      EXPECT_NE(guide.find("|---|---|---|---|\n" + rows), std::string::npos) << name << " should have:\n" << rows;
      wanted += rows + "\n";
    }
    if (const char* record = std::getenv("PHALANX_RECORD_FRONTDOOR")) std::ofstream(std::string(record) + "." + name) << wanted;
  }
}

TEST(Flags, NoNameStandsTwice) {
  for (const PeerName& peer : peers()) {
    std::set<std::string> names;
    for (const PeerFlag& flag : flags_of(peer.peer))
      for (std::string_view one : base::split(flag.names, '|')) EXPECT_TRUE(names.emplace(one).second) << peer.title << " " << one;
  }
}

}  // namespace
}  // namespace phalanx::frontdoor
