// UTF-8: validity, columns on a terminal, and text made safe to show. Pure; every function takes any bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace phalanx::base {

// Well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms, at most U+10FFFF).
bool is_utf8(std::string_view text);

// The first character of `text`, which must not be empty: its code point and its length in bytes. A byte that starts no
// well-formed character is one character of length 1 with `valid` false.
struct Character {
  uint32_t code_point = 0;
  size_t length = 1;
  bool valid = true;
};
Character first_character(std::string_view text);

// Columns a terminal gives the text: East Asian wide and emoji take 2, combining and control characters 0, a bad byte 1.
size_t display_width(std::string_view text);
size_t display_width(uint32_t code_point);
// The longest start of `text` that fits in `columns`; never cuts a character.
std::string_view fit_columns(std::string_view text, size_t columns);
// `text` padded on the right with spaces up to `columns`; longer text is returned whole.
std::string pad_right(std::string_view text, size_t columns);

// Safe to show on a terminal: control characters and bad bytes become \n, \t, \x1b …; longer text than `max_bytes` is
// cut at a character and ends in "…".
std::string printable(std::string_view text, size_t max_bytes = 120);
// Whole text made safe to show: as printable, but lines stay lines, tabs stay tabs, "\r\n" ends a line, and nothing is cut. Every text that
// may hold words of a rank, a host or a program passes through here once, where it is shown (Error::render, View::talk, job::narrate).
std::string printable_lines(std::string_view text);
// The same between double quotes, with \" and \\ escaped: for values named in an error.
std::string quote(std::string_view text, size_t max_bytes = 120);

}  // namespace phalanx::base
