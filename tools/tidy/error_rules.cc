// The texts of errors against their Chinese. An error is made in English and looked up when it is shown (src/words/said.h), so nothing in
// its type says that it has Chinese: this rule finds the calls that make errors, and the literals in them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>

#include "base/text.h"
#include "compile_words/catalogue.h"
#include "tidy/rules.h"

namespace phalanx::tidy {
namespace {

// Errors that no user of a whole program meets: of what is compiled into it (codes), and of a message of our own programs
// with impossible values (wire); the error above them has Chinese.
constexpr std::array<std::string_view, 4> kNeverShown = {"src/codes/", "src/wire/bounds.cc", "src/wire/walk.h", "src/machine/ranks/ras_"};

// Folders whose longer texts are for people wherever they stand, in tables and conditions too, and what in them is not: words of other
// programs, files that are written for other programs, and texts of defects of our own.
constexpr std::array<std::string_view, 15> kForPeople = {"src/agent/",        "src/cli/",         "src/engine/checkpoint/",
                                                         "src/engine/comm/",  "src/engine/data/", "src/engine/parallel/",
                                                         "src/engine/train/", "src/envcli/",      "src/fit/",
                                                         "src/hosts/",        "src/job/",         "src/logs/runs/",
                                                         "src/os/",           "src/sync/",        "src/view/"};
// Tables whose texts of two words and more are for people.
constexpr std::string_view kTable = "src/tune/recipe/deepspeed.cc";
constexpr std::array<std::string_view, 22> kForPrograms = {"src/agent/looks/stack_dump.cc",
                                                           "src/agent/ranks/exit_evidence.cc",
                                                           "src/agent/ranks/python_hook.cc",
                                                           "src/cli/by_hand/pod_manifest.cc",
                                                           "src/cli/detach.cc",
                                                           "src/cli/flags/completion.cc",
                                                           "src/cli/flags/man_page.cc",
                                                           "src/cli/submit_script.cc",
                                                           "src/engine/comm/network/host_link.cc",
                                                           "src/engine/data/check.cc",
                                                           "src/engine/data/collate.cc",
                                                           "src/engine/data/files/cut_files.cc",
                                                           "src/engine/data/files/token_file.cc",
                                                           "src/engine/parallel/data_parallel.cc",
                                                           "src/engine/train/trainer.cc",
                                                           "src/engine/train/trainer_setup.cc",
                                                           "src/hosts/connect/container_start.cc",
                                                           "src/hosts/connect/deploy.cc",
                                                           "src/hosts/connect/openssh.cc",
                                                           "src/hosts/connect/slurm.cc",
                                                           "src/hosts/join/relay_to_node.cc",
                                                           "src/logs/runs/disk_files.cc"};

// The functions of a source that make errors, besides the common ones: those that return one, and lambdas that begin with fail(…).
std::set<std::string> makers(const std::string& code) {
  static const std::regex kReturns(R"(\b(?:base::)?(?:Error|Status|Failure)\s+(\w+)\()");
  static const std::regex kLambda(R"(\bauto\s+(\w+)\s*=\s*\[[^\]]*\]\s*(?:\([^()]*\)\s*)?\{\s*return\s+(?:base::)?fail\()");
  std::set<std::string> out = {"fail", "because", "with_hint", "within", "usage", "agree", "require", "require_same"};
  for (const std::regex* shape : {&kReturns, &kLambda})
    for (auto found = std::sregex_iterator(code.begin(), code.end(), *shape); found != std::sregex_iterator(); ++found)
      out.insert((*found)[1]);
  out.erase("ok");
  return out;
}

size_t closing(std::string_view code, size_t open) {
  int depth = 0;
  for (size_t i = open; i < code.size(); ++i) {
    if (code[i] == '(' || code[i] == '{' || code[i] == '[') ++depth;
    if ((code[i] == ')' || code[i] == '}' || code[i] == ']') && --depth == 0) return i;
  }
  return code.size();
}

// Two words in lower case that belong to no path, option or placeholder, and no command to type.
bool is_sentence(const std::string& text) {
  static const std::regex kValue(R"(\{[^}]*\})"), kWord(R"((^|[^\w./<-])[a-z]{2,}(?=[^\w/>]|$))");
  static const std::regex kCommand(R"(^\s*(phalanx|phalanx-train|ssh|ls|df|ss|getent|head|sudo|chmod|python3?|device=cpu)\b)");
  const std::string bare = std::regex_replace(text, kValue, " ");
  const auto words = std::distance(std::sregex_iterator(bare.begin(), bare.end(), kWord), std::sregex_iterator());
  return words >= (std::regex_search(text, kCommand) ? 8 : 2);
}

// Four words after one another.
bool is_long_sentence(const std::string& text) {
  static const std::regex kValue(R"(\{[^}]*\})"), kWords(R"((^|[^\w./=<-])[a-z']+(,? [a-z']{2,}){3}(?=[^\w/=.]|$))");
  static const std::regex kCommand(R"(^\s*(phalanx|sudo|show) )");
  return std::regex_search(std::regex_replace(text, kValue, " "), kWords) && !std::regex_search(text, kCommand);
}

template <size_t N>
bool lies_in(const std::array<std::string_view, N>& places, const std::string& path) {
  return std::any_of(places.begin(), places.end(), [&](std::string_view place) { return path.starts_with(place); });
}

}  // namespace

std::vector<Finding> check_errors(const std::vector<Source>& sources) {
  words::Catalogue catalogue;
  for (const Source& source : sources)
    if (source.path().starts_with("words/zh-CN/")) (void)words::add_file(source.path(), source.text(), &catalogue);
  std::vector<Finding> out;
  for (const Source& source : sources) {
    const std::string& path = source.path();
    if (!source.cpp() || !path.starts_with("src/")) continue;
    if (lies_in(kNeverShown, path)) continue;
    const std::string& code = source.code();
    const std::vector<Quoted> all = literals(source);
    const std::set<std::string> names = makers(code);
    std::set<size_t> seen;
    auto look = [&](const Quoted& literal) {
      const bool known = catalogue.contains(literal.content) || catalogue.contains(base::replace_all(literal.content, "\n", ""));
      if (!known && seen.insert(literal.begin).second)
        out.push_back(
            {path, source.line_of(literal.begin), "error", fmt::format("\"{}\" has no Chinese in words/zh-CN/said.yaml", literal.content)});
    };
    static const std::regex kCall(R"(\b(\w+)\()");
    for (auto call = std::sregex_iterator(code.begin(), code.end(), kCall); call != std::sregex_iterator(); ++call) {
      if (!names.contains((*call)[1])) continue;
      const size_t open = static_cast<size_t>(call->position() + call->length()) - 1, end = closing(code, open);
      for (auto literal = std::lower_bound(all.begin(), all.end(), open, [](const Quoted& q, size_t at) { return q.begin < at; });
           literal != all.end() && literal->begin < end; ++literal)
        if (is_sentence(literal->content)) look(*literal);
    }
    if (path == kTable)
      for (const Quoted& literal : all)
        if (is_sentence(literal.content)) look(literal);
    if (!lies_in(kForPeople, path) || lies_in(kForPrograms, path)) continue;
    for (const Quoted& literal : all)
      if (is_long_sentence(literal.content)) look(literal);
  }
  return out;
}

}  // namespace phalanx::tidy
