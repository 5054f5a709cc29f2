// The texts of errors against their Chinese. An error is made in English and looked up when it is shown (src/words/said.h), so nothing in
// its type says that it has Chinese: this rule finds the calls that make errors, and the literals in them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>

#include "compile_words/catalogue.h"
#include "tidy/rules.h"

namespace phalanx::tidy {
namespace {

// Errors that no user of a whole program meets: of what is compiled into it (codes), and of two of our own programs that do not
// understand each other (wire, store); the error above them has Chinese.
constexpr std::array<std::string_view, 4> kNeverShown = {"src/codes/", "src/wire/", "src/store/", "src/machine/ranks/ras_"};

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

}  // namespace

std::vector<Finding> check_errors(const std::vector<Source>& sources) {
  words::Catalogue catalogue;
  for (const Source& source : sources)
    if (source.path().starts_with("words/zh-CN/")) (void)words::add_file(source.path(), source.text(), &catalogue);
  std::vector<Finding> out;
  for (const Source& source : sources) {
    const std::string& path = source.path();
    if (!source.cpp() || !path.starts_with("src/")) continue;
    if (std::any_of(kNeverShown.begin(), kNeverShown.end(), [&](std::string_view folder) { return path.starts_with(folder); })) continue;
    const std::string& code = source.code();
    const std::vector<Quoted> all = literals(source);
    const std::set<std::string> names = makers(code);
    static const std::regex kCall(R"(\b(\w+)\()");
    std::set<size_t> seen;
    for (auto call = std::sregex_iterator(code.begin(), code.end(), kCall); call != std::sregex_iterator(); ++call) {
      if (!names.contains((*call)[1])) continue;
      const size_t open = static_cast<size_t>(call->position() + call->length()) - 1, end = closing(code, open);
      for (auto literal = std::lower_bound(all.begin(), all.end(), open, [](const Quoted& q, size_t at) { return q.begin < at; });
           literal != all.end() && literal->begin < end; ++literal)
        if (is_sentence(literal->content) && !catalogue.contains(literal->content) && seen.insert(literal->begin).second)
          out.push_back({path, source.line_of(literal->begin), "error",
                         fmt::format("\"{}\" has no Chinese in words/zh-CN/said.yaml", literal->content)});
    }
  }
  return out;
}

}  // namespace phalanx::tidy
