// Which literal of a program a byte lies in, and how a path is spelled there.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace phalanx::envmove {

// What is known of a text: nothing, so a quote is a character; a shell, so a single quote directly before a path encloses it; some
// language, of which a double quote does; Python or JSON, whose literals are followed from the beginning.
enum class Code { kNone, kShell, kSome, kPython };

class Literals {
 public:
  Literals(std::string_view text, Code code) : text_(text), code_(code) {}
  // The quote of the literal that encloses the byte; '\0': none does, or one in which nothing can be escaped (r'…'). `at` never falls.
  char around(size_t at);

 private:
  void step();

  std::string_view text_;
  Code code_;
  size_t next_ = 0;
  char quote_ = '\0';  // of the literal that text_[next_] lies in
  bool long_ = false;  // of three quotes
  bool raw_ = false;
};

// The path within a literal of that quote.
std::string in_literal(std::string_view path, char quote);

}  // namespace phalanx::envmove
