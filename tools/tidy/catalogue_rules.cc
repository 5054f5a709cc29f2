// The texts of src/ against their Chinese (src/words/message.h): both hold the same ones, and Chinese stands nowhere else.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <regex>

#include "compile_words/catalogue.h"
#include "tidy/rules.h"

namespace phalanx::tidy {
namespace {

// Chinese that is no text for people: marks after which a line may break, and the headings of the Chinese pages of codes/.
constexpr std::array<std::string_view, 4> kChineseSources = {"src/base/wrap.cc", "src/codes/page.cc", "src/codes/page.h",
                                                             "src/logs/line_splitter.cc"};

struct Text {
  size_t at = 0;
  std::optional<std::string> english;  // none: no literal stands where one must
  bool for_chinese = false;            // has an argument chinese_only(…)
};

size_t closing(std::string_view code, size_t open) {
  int depth = 0;
  for (size_t i = open; i < code.size(); ++i) {
    if (code[i] == '(' || code[i] == '{') ++depth;
    if ((code[i] == ')' || code[i] == '}') && --depth == 0) return i;
  }
  return code.size();
}

// The literal is what is in the parentheses, or follows one argument without a comma at the top: the language.
bool is_first_or_second(std::string_view before) {
  size_t end = before.find_last_not_of(" \n");
  if (end == std::string_view::npos) return true;
  if (before[end] != ',') return false;
  int depth = 0;
  for (char c : before.substr(0, end)) {
    if (c == '(' || c == '{') ++depth;
    if (c == ')' || c == '}') --depth;
    if (depth < 0 || (c == ',' && depth == 0)) return false;
  }
  return depth == 0;
}

// tr(…), Text{…}, Text kName{…}, Phrase<…> kName{…}.
std::vector<Text> texts_of(const Source& source) {
  static const std::regex kMark(R"(\btr\(|\bText(\s+\w+)?\{|\bPhrase<[^;{}()]*>\s+\w+\{)");
  const std::string& code = source.code();
  const std::vector<Quoted> all = literals(source);
  std::vector<Text> out;
  for (auto mark = std::sregex_iterator(code.begin(), code.end(), kMark); mark != std::sregex_iterator(); ++mark) {
    size_t open = static_cast<size_t>(mark->position() + mark->length()) - 1, end = closing(code, open);
    if (code.find_first_not_of(" \n", open + 1) == end) continue;  // Text{}
    Text text{open, std::nullopt, std::string_view(code).substr(open, end - open).find("chinese_only(") != std::string_view::npos};
    for (const Quoted& literal : all)
      if (literal.begin > open) {
        if (literal.begin < end && is_first_or_second(std::string_view(code).substr(open + 1, literal.begin - open - 1)))
          text.english = literal.content;
        break;
      }
    out.push_back(std::move(text));
  }
  return out;
}

// Of "{}" and "{} {}" nothing can be translated.
bool says_something(const std::string& english) {
  static const std::regex kValues(R"(\{[^}]*\})"), kWords("[A-Za-z:;,.?]");
  return std::regex_search(std::regex_replace(english, kValues, ""), kWords);
}

void check_texts(const Source& source, const words::Catalogue& catalogue, std::set<std::string>* used, std::vector<Finding>* out) {
  for (const Text& text : texts_of(source)) {
    auto add = [&](std::string what) { out->push_back({source.path(), source.line_of(text.at), "catalogue", std::move(what)}); };
    if (!text.english) {
      add("a text is a literal right here, where its Chinese can be looked for");
      continue;
    }
    auto found = catalogue.find(*text.english);
    if (found == catalogue.end()) {
      if (says_something(*text.english)) add(fmt::format("\"{}\" has no Chinese in words/zh-CN/", *text.english));
      continue;
    }
    used->insert(*text.english);
    bool one_more = words::arguments_of(found->second.chinese) > words::arguments_of(*text.english);
    if (one_more && !text.for_chinese) add(fmt::format("the Chinese of \"{}\" names an argument that is not given", *text.english));
  }
}

}  // namespace

std::vector<Finding> check_catalogue(const std::vector<Source>& sources) {
  std::vector<Finding> out;
  words::Catalogue catalogue;
  for (const Source& source : sources)
    if (source.path().starts_with("words/zh-CN/"))
      if (base::Status added = words::add_file(source.path(), source.text(), &catalogue); !added.ok())
        out.push_back({source.path(), 0, "catalogue", added.error().message});
  std::set<std::string> used;
  for (const Source& source : sources)
    if (source.cpp() && source.path().starts_with("src/") && !source.path().starts_with("src/words/"))
      check_texts(source, catalogue, &used, &out);
  // Texts of words/zh-CN/said*.yaml are looked up when they are shown (words/said.h): any literal may make them.
  for (const Source& source : sources)
    if (source.cpp() && source.path().starts_with("src/"))
      for (const Quoted& literal : literals(source))
        if (auto found = catalogue.find(literal.content); found != catalogue.end() && found->second.file.starts_with("words/zh-CN/said"))
          used.insert(literal.content);
  // So do cells of tables of values: what to type instead of another tool's option.
  auto is_said = [&](const std::string& text) {
    auto found = catalogue.find(text);
    return found != catalogue.end() && found->second.file.starts_with("words/zh-CN/said");
  };
  for (const Source& source : sources)
    if (source.path().starts_with("codes/values/"))
      for (std::string_view line : split(source.text(), '\n'))
        for (std::string_view cell : split(line, '\t'))
          if (std::string text(cell); is_said(text)) used.insert(text);
  for (const auto& [english, translation] : catalogue)
    if (!used.contains(english)) out.push_back({translation.file, 0, "catalogue", fmt::format("\"{}\" is not in src/", english)});
  return out;
}

std::vector<Finding> check_chinese(const Source& source) {
  std::vector<Finding> out;
  bool ours = source.cpp() && source.parts()[0] == "src";
  if (!ours || std::find(kChineseSources.begin(), kChineseSources.end(), source.path()) != kChineseSources.end()) return out;
  // CJK punctuation, Han characters (three bytes, the first of them E4 to E9) and full-width forms.
  static const std::regex kChinese("\xE3\x80[\x80-\xBF]|[\xE4-\xE9][\x80-\xBF][\x80-\xBF]|\xEF[\xBC-\xBE][\x80-\xBF]");
  const std::string& text = source.text();
  int last = 0;
  for (auto found = std::sregex_iterator(text.begin(), text.end(), kChinese); found != std::sregex_iterator(); ++found) {
    int line = source.line_of(static_cast<size_t>(found->position()));
    if (line != last) out.push_back({source.path(), line, "chinese", "Chinese text is data: words/zh-CN/"});
    last = line;
  }
  return out;
}

}  // namespace phalanx::tidy
