#include "envmove/literals.h"

#include <algorithm>

namespace phalanx::envmove {
namespace {

// r'…', rb'…', Rb'…'; not the end of a longer name.
bool is_raw(std::string_view text, size_t quote) {
  size_t begin = quote;
  while (begin > 0 && quote - begin < 3 && std::string_view("rRbBuUfF").find(text[begin - 1]) != std::string_view::npos) --begin;
  return quote - begin < 3 && text.substr(begin, quote - begin).find_first_of("rR") != std::string_view::npos;
}

}  // namespace

void Literals::step() {
  const char c = text_[next_];
  if (quote_ == '\0') {
    if (c == '#') next_ = std::min(text_.find('\n', next_), text_.size() - 1);
    if (c == '\'' || c == '"') {
      quote_ = c;
      long_ = text_.substr(next_, 3) == std::string(3, c);
      raw_ = is_raw(text_, next_);
      next_ += long_ ? 2 : 0;
    }
  } else if (c == '\\') {
    ++next_;
  } else if (c == quote_ && (!long_ || text_.substr(next_, 3) == std::string(3, c))) {
    next_ += long_ ? 2 : 0;
    quote_ = '\0';
  } else if (c == '\n' && !long_) {
    quote_ = '\0';  // it was none
  }
  ++next_;
}

char Literals::around(size_t at) {
  switch (code_) {
    case Code::kNone: return '\0';
    case Code::kShell: return at > 0 && text_[at - 1] == '\'' ? '\'' : '\0';
    case Code::kSome: return at > 0 && text_[at - 1] == '"' ? '"' : '\0';
    case Code::kPython: break;
  }
  while (next_ < at) step();
  return raw_ ? '\0' : quote_;
}

std::string in_literal(std::string_view path, char quote) {
  std::string out;
  for (char c : path) {
    if (c == '\\' || c == quote) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace phalanx::envmove
