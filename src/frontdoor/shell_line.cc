#include "frontdoor/shell_line.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"

namespace phalanx::frontdoor {
namespace {

using base::Status;

bool name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool name_character(char c) { return name_start(c) || (c >= '0' && c <= '9'); }

// "A" of "A=1"; 0: no assignment.
size_t assigned_name(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos || !name_start(word[0])) return 0;
  return std::all_of(word.begin(), word.begin() + static_cast<ptrdiff_t>(equals), name_character) ? equals : 0;
}

// Reads the text once, from left to right. A word is collected in word_; `quoted_` tells "" from nothing. What a variable stands for is not
// split again at blanks, as in zsh: pasted lines with paths that hold blanks stay whole.
class ShellReader {
 public:
  explicit ShellReader(std::string_view text) : text_(text) {}

  base::Result<std::vector<ShellCommand>> read() {
    if (text_.size() > kLargestShellText) return refuse("the text is larger than 1 MiB");
    while (at_ < text_.size()) TRY(step());
    TRY(end_command());
    return std::move(commands_);
  }

 private:
  base::Error refuse(std::string_view what) const { return base::fail(base::ErrorKind::kConfig, fmt::format("line {}: {}", line_, what)); }
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  Status step() {
    const char c = text_[at_];
    if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) return skip_continuation();
    if (c == '\n') {
      TRY(end_command());
      ++at_;
      ++line_;
      command_.line = line_;
      return base::ok();
    }
    if (base::is_blank(c)) {
      ++at_;
      return end_word();
    }
    if (c == '#' && !in_word()) {
      at_ = std::min(text_.find('\n', at_), text_.size());
      return base::ok();
    }
    if (c == ';' || c == '|' || c == '(' || c == ')') {
      ++at_;
      return end_command();
    }
    if (c == '&') return take_ampersand();
    if (c == '>' || c == '<') return take_redirection();
    if (c == '\'') return take_single_quotes();
    if (c == '"') return take_double_quotes();
    if (c == '$') return take_variable();
    if (c == '`') return refuse("commands between backquotes are not run here");
    if (c == '\\') ++at_;
    return take_character();
  }

  bool in_word() const { return !word_.empty() || quoted_; }

  Status take_character() {
    if (at_ < text_.size()) {
      if (text_[at_] == '\0') return refuse("a zero byte");
      if (text_[at_] == '\n') ++line_;
      word_ += text_[at_++];
    }
    return base::ok();
  }

  Status skip_continuation() {
    at_ += peek(1) == '\r' ? 3 : 2;
    ++line_;
    return base::ok();
  }

  Status take_ampersand() {
    if (peek(1) == '>') return take_redirection();
    ++at_;
    if (peek() == '&') ++at_;
    else dropped_ = "&";
    return end_command();
  }

  // ">log", "2>&1", "&> log", "< /dev/null": taken off, and reported.
  Status take_redirection() {
    std::string whole;
    if (!word_.empty() && std::all_of(word_.begin(), word_.end(), [](char c) { return c >= '0' && c <= '9'; })) whole = std::move(word_);
    else TRY(end_word());
    word_.clear();
    while (peek() == '>' || peek() == '<' || peek() == '&') whole += text_[at_++];
    while (peek() == ' ' || peek() == '\t') ++at_;
    redirection_ = whole;
    redirecting_ = true;
    return base::ok();
  }

  Status take_single_quotes() {
    const size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) return refuse("a single quote is left open");
    quoted_ = true;
    for (++at_; at_ < end;) TRY(take_character());
    ++at_;
    return base::ok();
  }

  Status take_double_quotes() {
    quoted_ = true;
    for (++at_; peek() != '"';) {
      if (at_ >= text_.size()) return refuse("a double quote is left open");
      if (peek() == '\\' && peek(1) == '\n') {
        TRY(skip_continuation());
        continue;
      }
      if (peek() == '\\' && std::string_view("\"\\$`").find(peek(1)) != std::string_view::npos && peek(1)) ++at_;
      else if (peek() == '$') {
        TRY(take_variable());
        continue;
      } else if (peek() == '`') {
        return refuse("commands between backquotes are not run here");
      }
      TRY(take_character());
    }
    ++at_;
    return base::ok();
  }

  Status take_variable() {
    if (peek(1) == '(') return refuse("$(…) is not run here: write its result");
    size_t begin = at_ + 1;
    const bool braces = peek(1) == '{';
    if (braces) ++begin;
    size_t end = begin;
    while (end < text_.size() && name_character(text_[end])) ++end;
    const bool parameter = end == begin && end < text_.size() && std::string_view("@*#?").find(text_[end]) != std::string_view::npos;
    if (parameter) ++end;
    std::string name(text_.substr(begin, end - begin));
    if (!braces && !name.empty() && name[0] >= '0' && name[0] <= '9') name.resize(1), end = begin + 1;
    if (name.empty()) return take_character();  // a lone '$'
    std::optional<std::string> fallback;
    if (braces) {
      if (end + 1 < text_.size() && text_[end] == ':' && (text_[end + 1] == '-' || text_[end + 1] == '=')) {
        const size_t close = text_.find('}', end);
        if (close == std::string_view::npos) return refuse("${ without }");
        fallback = std::string(text_.substr(end + 2, close - end - 2));
        end = close;
      }
      if (end >= text_.size() || text_[end] != '}') return refuse("only a name, with or without :-value, may stand between braces");
      ++end;
    }
    at_ = end;
    return put_in(name, fallback);
  }

  Status put_in(const std::string& name, const std::optional<std::string>& fallback) {
    auto known = variables_.find(name);
    if (known != variables_.end()) {
      word_ += known->second;
      for (const std::string& other : unknown_in_[name]) note_unknown(other);
    } else if (fallback && fallback->find('$') == std::string::npos) {
      word_ += *fallback;
    } else {
      word_ += "${" + name + "}";
      note_unknown(name);
    }
    return word_.size() > kLargestExpansion ? Status(refuse("a word is larger than 1 MiB")) : base::ok();
  }

  void note_unknown(const std::string& name) {
    if (std::find(command_.unknown.begin(), command_.unknown.end(), name) == command_.unknown.end()) command_.unknown.push_back(name);
  }

  Status end_word() {
    if (redirecting_) {
      if (in_word() || !redirection_.empty()) command_.dropped.push_back(redirection_ + word_);
      redirecting_ = false;
    } else if (in_word()) {
      bytes_ += word_.size();
      if (command_.words.size() >= kMostShellWords || bytes_ > kLargestExpansion) return refuse("the command is too long");
      command_.words.push_back(word_);
    }
    word_.clear();
    quoted_ = false;
    return base::ok();
  }

  Status end_command() {
    TRY(end_word());
    if (!dropped_.empty()) command_.dropped.push_back(std::move(dropped_));
    dropped_.clear();
    std::vector<std::string>& words = command_.words;
    const bool exports = !words.empty() && (words[0] == "export" || words[0] == "set" || words[0] == "declare");
    size_t first = exports ? 1 : 0;
    std::vector<std::pair<std::string, std::string>> assigned;
    while (first < words.size()) {
      const size_t equals = assigned_name(words[first]);
      if (equals) assigned.emplace_back(words[first].substr(0, equals), words[first].substr(equals + 1));
      else if (!exports) break;
      else if (auto known = variables_.find(words[first]); known != variables_.end()) assigned.emplace_back(known->first, known->second);
      ++first;
    }
    if (first == words.size()) {  // nothing but assignments: they last
      for (auto& [name, value] : assigned) {
        variables_[name] = value;
        unknown_in_[name] = command_.unknown;
        if (exports) exported_[name] = value;
        else if (auto again = exported_.find(name); again != exported_.end()) again->second = value;
      }
    } else {
      command_.assignments.assign(exported_.begin(), exported_.end());
      command_.assignments.insert(command_.assignments.end(), assigned.begin(), assigned.end());
      words.erase(words.begin(), words.begin() + static_cast<ptrdiff_t>(first));
      commands_.push_back(std::move(command_));
    }
    command_ = {};
    command_.line = line_;
    bytes_ = 0;
    return base::ok();
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  size_t bytes_ = 0;
  std::string word_;
  bool quoted_ = false;
  bool redirecting_ = false;
  std::string redirection_;
  std::string dropped_;
  ShellCommand command_;
  std::vector<ShellCommand> commands_;
  std::map<std::string, std::string> variables_;
  std::map<std::string, std::string> exported_;
  std::map<std::string, std::vector<std::string>> unknown_in_;
};

}  // namespace

base::Result<std::vector<ShellCommand>> parse_shell(std::string_view text) { return ShellReader(text).read(); }

}  // namespace phalanx::frontdoor
