// Every option of every peer: honoured, rejected, or of no meaning here and said so. The guides' tables are these rows.
#include "frontdoor/peer_flags.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "base/text.h"
#include "world.h"

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
      {"role", "default"}, {"numa-binding", "node"}, {"signals-to-handle", "SIGTERM"}, {"redirects", "3"},
      {"tee", "3"},        {"launcher", "pdsh"}};
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

// Of what is honoured every option stands in a golden case, as it is typed or as a key of accelerate's file.
TEST(Flags, WhatIsHonouredHasAGoldenCase) {
  std::string cases;
  for (const auto& entry : std::filesystem::directory_iterator(PHALANX_TEST_DATA "/frontdoor")) cases += read(entry.path());
  for (const PeerName& peer : peers())
    for (const PeerFlag& flag : flags_of(peer.peer)) {
      if (flag.answer != Answer::kHonoured) continue;
      EXPECT_FALSE(flag.becomes.empty()) << flag.name();
      const std::string dashes = "--" + std::string(flag.name()), underscores = "--" + base::replace_all(flag.name(), "-", "_");
      bool found = cases.find(underscores) != std::string::npos || cases.find(dashes) != std::string::npos;
      EXPECT_TRUE(found) << peer.title << " " << flag.name();
    }
  for (const PeerFlag& flag : llamafactory_variables())
    EXPECT_NE(cases.find(std::string(flag.names) + "="), std::string::npos) << flag.names;
}

std::string guide_row(const PeerFlag& flag, base::Language language, bool variable) {
  std::string names;
  for (std::string_view one : base::split(flag.names, '|'))
    names += fmt::format("{}`{}{}`", names.empty() ? "" : ", ", variable ? "" : one.size() == 1 ? "-" : "--", one);
  const bool chinese = language == base::Language::kChinese;
  const std::string what = flag.answer == Answer::kHonoured   ? fmt::format("`{}`", flag.becomes)
                           : flag.answer == Answer::kRejected ? std::string(flag.why.in(language))
                                                              : std::string(flag.why.in(language));
  const char* answer = flag.answer == Answer::kHonoured   ? (chinese ? "生效" : "honoured")
                       : flag.answer == Answer::kRejected ? (chinese ? "拒绝" : "rejected")
                                                          : (chinese ? "无意义" : "no meaning");
  return fmt::format("| {} | {} | {} |\n", names, answer, what);
}

TEST(Flags, TheGuidesHaveEveryRow) {
  for (base::Language language : {base::Language::kEnglish, base::Language::kChinese}) {
    const char* name = language == base::Language::kEnglish ? "front-doors.md" : "front-doors.zh-CN.md";
    const std::string guide = read(std::string(PHALANX_TEST_DATA) + "/../../docs/guides/" + name);
    std::string wanted;
    for (Peer peer : {Peer::kTorchrun, Peer::kTorchLaunch, Peer::kAccelerate, Peer::kDeepSpeed, Peer::kLlamaFactory}) {
      std::string table;
      const std::vector<PeerFlag> rows = flags_of(peer);
      // launch has torchrun's options, which stand in its table.
      for (size_t i = peer == Peer::kTorchLaunch ? torchrun_flags().size() : 0; i < rows.size(); ++i)
        table += guide_row(rows[i], language, peer == Peer::kLlamaFactory);
      EXPECT_NE(guide.find("|---|---|---|\n" + table), std::string::npos) << name << " should have:\n" << table;
      wanted += table + "\n";
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
