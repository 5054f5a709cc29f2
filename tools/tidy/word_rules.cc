// The mechanical part of docs/STYLE.md: what a program can hold against the sentences in our sources without false alarms.
#include <fmt/format.h>

#include <regex>

#include "base/counted.h"
#include "tidy/rules.h"

namespace phalanx::tidy {
namespace {

std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    char next = text[++i];
    out += next == 'n' ? '\n' : next == 't' ? '\t' : next;
  }
  return out;
}

}  // namespace

// Comments and raw strings are blank in code(), so each quote that is left opens or closes a literal.
std::vector<Quoted> literals(const Source& source) {
  std::vector<Quoted> out;
  const std::string& code = source.code();
  for (size_t open = code.find('"'); open != std::string::npos;) {
    size_t close = code.find('"', open + 1);
    if (close == std::string::npos) break;
    std::string content = unescape(std::string_view(source.text()).substr(open + 1, close - open - 1));
    bool neighbour = !out.empty() && code.find_first_not_of(" \n", out.back().end) == open;
    if (neighbour) out.back().content += content, out.back().end = close + 1;
    else out.push_back({open, close + 1, content});
    open = code.find('"', close + 1);
  }
  return out;
}

namespace {

struct WordRule {
  std::regex pattern;
  std::string_view advice;
};

const std::vector<WordRule>& word_rules() {
  constexpr auto kWords = std::regex::ECMAScript | std::regex::icase;
  static const std::vector<WordRule> rules = {
      {std::regex(R"(\bbehind (?!by\b))", kWords), "for time write 'after'"},
      {std::regex(R"(\banew\b)", kWords), "write 'again', or 'restart'"},
      {std::regex(R"(\bplease\b)", kWords), "say what to do, without 'please'"},
      {std::regex(R"(\bwish(es)?\b)", kWords), "write 'request'"},
      {std::regex(R"(\bmakes? no sense\b)", kWords), "write 'malformed' or 'invalid'"},
      {std::regex(R"(\b(whoever|for want of|cannot be had|stands? still|by us)\b)", kWords), "name the actor, and use the field's noun"},
      {std::regex(R"(\b(goes|going) on\b)", kWords), "write 'continues'"},
      {std::regex(R"([a-z]!(\s|$))"), "no exclamation"},
      {std::regex("[a-z,;.]  +[a-z]"), "one space between words"},
  };
  return rules;
}

const std::vector<WordRule>& chinese_rules() {
  static const std::vector<WordRule> rules = {
      // A Han character is three bytes, the first of them E4 to E9.
      {std::regex("[\xE4-\xE9][\x80-\xBF][\x80-\xBF][,;?!(]"), "Chinese text has full-width punctuation"},
      {std::regex("\xE6\x82\xA8"), "Chinese text addresses the reader as \xE4\xBD\xA0"},
  };
  return rules;
}

// fmt::format("{} hosts", 1) is "1 hosts".
bool is_uncounted(const Source& source, const Quoted& literal) {
  static const std::regex kCall(R"(\bfmt::format\(\s*$)");
  if (source.path().starts_with("src/engine/")) return false;
  const size_t begin = literal.begin > 60 ? literal.begin - 60 : 0;
  const std::string before = source.code().substr(begin, literal.begin - begin);
  return std::regex_search(before, kCall) && base::has_counts(literal.content);
}

// What base::Error shows on a line of its own: no full stop there, since more lines follow.
bool is_error_line(std::string_view code_before) {
  static const std::regex kCall(R"((\bfail\([\w:]+,\s*|\b(because|with_hint)\()(fmt::format\()?\s*$)");
  std::string tail(code_before.substr(code_before.size() - std::min<size_t>(code_before.size(), 120)));
  return std::regex_search(tail, kCall);
}

}  // namespace

std::vector<Finding> check_words(const Source& source) {
  std::vector<Finding> out;
  const std::string& all = source.text();
  if (source.path().starts_with("words/zh-CN/"))
    for (const WordRule& rule : chinese_rules())
      for (auto match = std::sregex_iterator(all.begin(), all.end(), rule.pattern); match != std::sregex_iterator(); ++match)
        out.push_back({source.path(), source.line_of(static_cast<size_t>(match->position())), "words",
                       fmt::format("'{}': {}", match->str(0), rule.advice)});
  if (source.parts()[0] != "src" || !source.cpp()) return out;
  for (const Quoted& literal : literals(source)) {
    const std::string& text = literal.content;
    auto add = [&](std::string what) { out.push_back({source.path(), source.line_of(literal.begin), "words", std::move(what)}); };
    if (text.find(' ') == std::string::npos && !std::regex_search(text, std::regex("[\x80-\xFF]"))) continue;  // a name, not a sentence
    for (const WordRule& rule : word_rules()) {
      std::smatch match;
      if (std::regex_search(text, match, rule.pattern)) add(fmt::format("'{}': {}", match.str(0), rule.advice));
    }
    bool stop = text.ends_with(".") && !text.ends_with("..");
    if (is_uncounted(source, literal)) add("a count and its noun: base::counted makes them agree (base/counted.h)");
    if (stop && is_error_line(std::string_view(source.code()).substr(0, literal.begin))) add("no full stop at the end of an error's line");
  }
  return out;
}

}  // namespace phalanx::tidy
