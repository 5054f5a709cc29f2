#include "logs/escape.h"

#include <algorithm>
#include <cstring>

namespace phalanx::logs {
namespace {

constexpr char kEscape = '\x1b';

// OSC, DCS, SOS, PM and APC are strings; they end in BEL or ESC backslash.
size_t string_length(std::string_view text) {
  size_t most = std::min(text.size(), kMaxEscapeBytes);
  for (size_t i = 2; i < most; ++i) {
    if (text[i] == '\a') return i + 1;
    if (text[i] == kEscape) return i + 1 < text.size() && text[i + 1] == '\\' ? i + 2 : i;
    if (text[i] == '\n') return i;  // never eats the end of a line
  }
  return most;
}

}  // namespace

size_t escape_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  char second = text[1];
  if (second == ']' || second == 'P' || second == 'X' || second == '^' || second == '_') return string_length(text);
  if (second == '[') {  // parameters and intermediates 0x20–0x3f, one final byte 0x40–0x7e
    size_t i = 2;
    while (i < text.size() && i < kMaxEscapeBytes && text[i] >= 0x20 && text[i] <= 0x3f) ++i;
    return i < text.size() && text[i] >= 0x40 && text[i] <= 0x7e ? i + 1 : i;
  }
  if (second >= 0x20 && second <= 0x2f) {  // ESC, intermediates, final: character sets
    size_t i = 2;
    while (i < text.size() && i < kMaxEscapeBytes && text[i] >= 0x20 && text[i] <= 0x2f) ++i;
    return i < text.size() && text[i] >= 0x30 && text[i] <= 0x7e ? i + 1 : i;
  }
  return second >= 0x30 && second <= 0x7e ? 2 : 1;
}

bool is_colour(std::string_view sequence) {
  if (sequence.size() < 3 || sequence[1] != '[' || sequence.back() != 'm') return false;
  std::string_view parameters = sequence.substr(2, sequence.size() - 3);
  return parameters.find_first_not_of("0123456789;:") == std::string_view::npos;
}

std::string strip_escapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (;;) {
    size_t escape = text.find(kEscape);
    out += text.substr(0, escape);
    if (escape == std::string_view::npos) return out;
    text.remove_prefix(escape);
    text.remove_prefix(escape_length(text));
  }
}

size_t take_cursor_ups(std::string_view& text) {
  constexpr size_t kMostRows = 999;
  size_t rows = 0;
  while (text.size() >= 3 && text.back() == 'A') {
    size_t begin = text.size() - 1;
    size_t count = 0, digit_value = 1;
    while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9' && text.size() - begin < 4) {
      count += static_cast<size_t>(text[--begin] - '0') * digit_value;
      digit_value *= 10;
    }
    if (begin < 2 || text[begin - 1] != '[' || text[begin - 2] != kEscape) break;
    rows = std::min(kMostRows, rows + std::max<size_t>(count, 1));
    text.remove_suffix(text.size() - (begin - 2));
  }
  return rows;
}

}  // namespace phalanx::logs
