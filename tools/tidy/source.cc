#include "tidy/source.h"

#include <algorithm>
#include <cctype>

namespace phalanx::tidy {
namespace {

bool word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The end (one past the last character) of the comment, string or character literal that starts at `at`, or `at`.
struct Literal {
  size_t end = 0;
  size_t keep = 0;  // so many characters at each end stay: the quotes
};

Literal raw_string(std::string_view text, size_t at) {
  size_t open = text.find('(', at);
  if (open == std::string_view::npos) return {text.size(), 0};
  std::string close = ")" + std::string(text.substr(at + 2, open - at - 2)) + "\"";
  size_t end = text.find(close, open);
  return {end == std::string_view::npos ? text.size() : end + close.size(), 0};
}

Literal quoted(std::string_view text, size_t at) {
  for (size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == '\\') ++i;
    else if (text[i] == text[at]) return {i + 1, 1};
  }
  return {at + 1, 1};
}

Literal literal_at(std::string_view text, size_t at) {
  std::string_view rest = text.substr(at);
  bool inside_word = at > 0 && word_character(text[at - 1]);
  if (rest.starts_with("//")) return {std::min(text.find('\n', at), text.size()), 0};
  if (rest.starts_with("/*")) {
    size_t end = text.find("*/", at + 2);
    return {end == std::string_view::npos ? text.size() : end + 2, 0};
  }
  if (rest.starts_with("R\"") && !inside_word) return raw_string(text, at);
  if (rest.starts_with("\"")) return quoted(text, at);
  if (rest.starts_with("'") && !inside_word) return quoted(text, at);  // 1'000 is a number
  return {at, 0};
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (size_t start = 0; start <= text.size();) {
    size_t end = std::min(text.find(separator, start), text.size());
    out.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return out;
}

std::string blank_comments_and_strings(std::string_view text) {
  std::string code(text);
  for (size_t i = 0; i < text.size();) {
    Literal literal = literal_at(text, i);
    if (literal.end <= i) {
      ++i;
      continue;
    }
    for (size_t k = i + literal.keep; k + literal.keep < literal.end; ++k)
      if (code[k] != '\n') code[k] = ' ';
    i = literal.end;
  }
  return code;
}

Source::Source(std::string path, std::string text)
    : path_(std::move(path)), text_(std::move(text)), code_(cpp() ? blank_comments_and_strings(text_) : text_), parts_(split(path_, '/')) {}

std::string Source::comments() const {
  std::string out(text_.size(), ' ');
  for (size_t i = 0; i < text_.size();) {
    const Literal literal = cpp() ? literal_at(text_, i) : Literal{i, 0};
    const bool comment = literal.end > i && text_[i] == '/';
    const size_t end = std::max(literal.end, i + 1);
    for (; i < end; ++i)
      if (comment || text_[i] == '\n') out[i] = text_[i];
  }
  return out;
}

std::vector<Include> Source::includes() const {
  std::vector<Include> out;
  std::vector<std::string> code_lines = split(code_, '\n');
  std::vector<std::string> text_lines = split(text_, '\n');
  for (size_t i = 0; i < code_lines.size(); ++i) {
    if (!code_lines[i].starts_with("#include \"")) continue;
    std::string path = text_lines[i].substr(10);
    out.push_back({static_cast<int>(i) + 1, path.substr(0, path.find('"'))});
  }
  return out;
}

int Source::line_of(size_t offset) const {
  return 1 + static_cast<int>(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text_.size())), '\n'));
}

}  // namespace phalanx::tidy
