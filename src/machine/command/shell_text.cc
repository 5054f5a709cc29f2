#include "machine/command/shell_text.h"

#include <algorithm>

#include <cctype>

#include "base/text.h"

namespace phalanx::machine {
namespace {

using Variables = std::map<std::string, std::string>;
constexpr int kMaxCommands = 10'000;
constexpr size_t kMaxWord = 64 << 10;

bool name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The length of a name at the start of `text`.
size_t name_length(std::string_view text) {
  size_t n = 0;
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return 0;
  while (n < text.size() && name_char(text[n])) ++n;
  return n;
}

class Shell {
 public:
  Shell(std::string_view text, const std::vector<std::string>& arguments, Variables variables,
        const std::function<void(const ShellCommand&, const Variables&)>& each)
      : text_(text), arguments_(arguments), variables_(std::move(variables)), each_(each) {}

  void run() {
    while (at_ < text_.size() && commands_ < kMaxCommands) step();
    end_command(false);
  }

 private:
  void step() {
    char c = text_[at_];
    if (c == '\n') return new_line();
    if (base::is_blank(c)) {
      end_word();
      ++at_;
      return;
    }
    if (c == '#' && !in_word_) {
      at_ = std::min(text_.find('\n', at_), text_.size());
      return;
    }
    switch (c) {
      case ';':
      case '(':
      case ')': ++at_; return end_command(false);
      case '|': at_ += text_.substr(at_, 2) == "||" ? 2 : 1; return end_command(false);
      case '&': return ampersand();
      case '<':
      case '>': return redirection();
      default: return piece();
    }
  }

  void new_line() {
    end_command(false);
    ++at_;
    ++line_;
    for (const std::string& end : here_documents_) skip_here_document(end);
    here_documents_.clear();
  }

  void skip_here_document(const std::string& end) {
    while (at_ < text_.size()) {
      size_t stop = std::min(text_.find('\n', at_), text_.size());
      std::string_view line = base::trim(text_.substr(at_, stop - at_));
      at_ = std::min(stop + 1, text_.size());
      ++line_;
      if (line == end) return;
    }
  }

  void ampersand() {
    if (text_.substr(at_, 2) == "&&") {
      at_ += 2;
      return end_command(false);
    }
    if (text_.substr(at_, 2) == "&>") {
      end_word();
      ++at_;
      return redirection();
    }
    ++at_;
    end_command(true);
  }

  void redirection() {
    bool descriptor = in_word_ && !quoted_ && word_.find_first_not_of("0123456789") == std::string::npos;
    if (descriptor) word_.clear(), in_word_ = false;
    end_word();
    bool output = text_[at_] == '>';
    size_t begin = at_;
    while (at_ < text_.size() && (text_[at_] == '<' || text_[at_] == '>')) ++at_;
    bool here = !output && at_ - begin == 2;
    if (at_ < text_.size() && text_[at_] == '&') {  // 2>&1
      ++at_;
      while (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-')) ++at_;
      return;
    }
    if (here && at_ < text_.size() && text_[at_] == '-') ++at_;
    target_ = here ? Target::kHere : output ? Target::kOutput : Target::kInput;
  }

  // One piece of a word: a quoted part, a variable, a plain byte.
  void piece() {
    in_word_ = true;
    char c = text_[at_];
    if (c == '\\') {
      if (text_.substr(at_ + 1, 1) == "\n" || text_.substr(at_ + 1, 2) == "\r\n") {
        at_ = text_.find('\n', at_) + 1;
        ++line_;
        if (word_.empty() && !quoted_) in_word_ = false;
        return;
      }
      if (++at_ < text_.size()) put(text_[at_++]);
    } else if (c == '\'') {
      quoted_ = true;
      size_t end = std::min(text_.find('\'', ++at_), text_.size());
      while (at_ < end) put(text_[at_++]);
      ++at_;
    } else if (c == '"') {
      quoted_ = true;
      double_quoted();
    } else if (c == '$' || c == '`') {
      expansion();
    } else {
      put(text_[at_++]);
    }
  }

  void double_quoted() {
    for (++at_; at_ < text_.size() && text_[at_] != '"';) {
      char c = text_[at_];
      if (c == '\\' && at_ + 1 < text_.size() && std::string_view("\"\\$`\n").find(text_[at_ + 1]) != std::string_view::npos) {
        if (text_[at_ + 1] == '\n') ++line_;
        else put(text_[at_ + 1]);
        at_ += 2;
      } else if (c == '$' || c == '`') {
        expansion();
      } else {
        put(text_[at_++]);
      }
    }
    ++at_;
  }

  void put(char c) {
    if (c == '\n') ++line_;
    if (word_.size() < kMaxWord) word_ += c;
  }
  void put(std::string_view text) {
    for (char c : text) put(c);
  }

  // "$X", "${X}", "${X:-word}", "$1"; what is not known stays as written, "$(…)" and "`…`" always do.
  void expansion() {
    size_t begin = at_;
    if (text_[at_] == '`') {
      at_ = std::min(text_.find('`', at_ + 1), text_.size() - 1) + 1;
      return put(text_.substr(begin, at_ - begin));
    }
    std::string_view rest = text_.substr(at_ + 1);
    if (rest.starts_with('(')) {
      int depth = 0;
      do {
        if (text_[++at_] == '(') ++depth;
        if (text_[at_] == ')') --depth;
      } while (depth > 0 && at_ + 1 < text_.size());
      ++at_;
      return put(text_.substr(begin, at_ - begin));
    }
    std::string name, fallback;
    bool braces = rest.starts_with('{');
    if (braces) {
      size_t end = rest.find('}');
      if (end == std::string_view::npos) end = rest.size() - 1;
      std::string_view inside = rest.substr(1, end > 0 ? end - 1 : 0);
      size_t n = name_length(inside);
      if (n == 0)
        while (n < inside.size() && std::isdigit(static_cast<unsigned char>(inside[n]))) ++n;
      name = inside.substr(0, n);
      std::string_view tail = inside.substr(n);
      if (tail.starts_with(":-")) fallback = tail.substr(2);
      else if (tail.starts_with("-")) fallback = tail.substr(1);
      else if (!tail.empty()) name.clear();
      at_ += end + 2;
    } else {
      size_t n = name_length(rest);
      if (n == 0 && !rest.empty() && std::string_view("0123456789@*#?$!").find(rest[0]) != std::string_view::npos) n = 1;
      name = rest.substr(0, n);
      at_ += n + 1;
    }
    put(value(name, fallback, text_.substr(begin, std::min(at_, text_.size()) - begin)));
  }

  std::string value(const std::string& name, const std::string& fallback, std::string_view written) const {
    if (!name.empty() && name.find_first_not_of("0123456789") == std::string::npos && name.size() < 4) {
      size_t index = static_cast<size_t>(std::stoi(name));
      if (index < arguments_.size()) return arguments_[index];
    } else if (auto found = variables_.find(name); found != variables_.end()) {
      return found->second;
    }
    if (!fallback.empty() && fallback.find('$') == std::string::npos) return fallback;
    return std::string(written);
  }

  void end_word() {
    if (!in_word_) return;
    std::string word = std::move(word_);
    bool quoted = quoted_;
    word_.clear();
    in_word_ = quoted_ = false;
    if (command_.line == 0) command_.line = line_;
    if (target_ != Target::kNone) {
      if (target_ == Target::kOutput) command_.outputs.push_back(word);
      if (target_ == Target::kHere) here_documents_.push_back(word);
      target_ = Target::kNone;
      return;
    }
    if (command_.words.empty()) {
      size_t n = name_length(word);
      if (n > 0 && n < word.size() && word[n] == '=') {
        command_.assignments[word.substr(0, n)] = word.substr(n + 1);
        return;
      }
      for (std::string_view keyword : {"then", "do", "else", "{", "}", "!", "if", "elif", "while", "until", "fi", "done", "time", "exec"})
        if (!quoted && word == keyword) return;
    }
    command_.words.push_back(std::move(word));
  }

  void end_command(bool background) {
    end_word();
    ShellCommand command = std::move(command_);
    command_ = {};
    if (command.words.empty() && command.outputs.empty()) {
      for (auto& [name, value] : command.assignments) set(name, value);
      return;
    }
    ++commands_;
    command.background = background;
    if (!command.words.empty() && (command.words[0] == "export" || command.words[0] == "declare")) return exports(command);
    each_(command, exported_);
  }

  void set(const std::string& name, const std::string& value) {
    if (variables_.size() < 1000 || variables_.count(name)) variables_[name] = value;
    if (exported_.count(name)) exported_[name] = value;
  }

  void exports(const ShellCommand& command) {
    for (size_t i = 1; i < command.words.size() && exported_.size() < 1000; ++i) {
      const std::string& word = command.words[i];
      size_t n = name_length(word);
      if (n == 0) continue;
      if (n < word.size() && word[n] == '=') set(word.substr(0, n), word.substr(n + 1));
      if (auto found = variables_.find(word.substr(0, n)); found != variables_.end()) exported_[found->first] = found->second;
    }
  }

  enum class Target { kNone, kInput, kOutput, kHere };

  std::string_view text_;
  const std::vector<std::string>& arguments_;
  Variables variables_, exported_;
  const std::function<void(const ShellCommand&, const Variables&)>& each_;
  size_t at_ = 0;
  int line_ = 1, commands_ = 0;
  std::string word_;
  bool in_word_ = false, quoted_ = false;
  Target target_ = Target::kNone;
  ShellCommand command_;
  std::vector<std::string> here_documents_;
};

}  // namespace

void read_shell(std::string_view text, const std::vector<std::string>& arguments, const std::map<std::string, std::string>& variables,
                const std::function<void(const ShellCommand&, const std::map<std::string, std::string>& exported)>& each) {
  Shell(text, arguments, variables, each).run();
}

}  // namespace phalanx::machine
