#include "base/unicode.h"

#include <cstring>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace phalanx::base {
namespace {

struct Span {
  uint32_t first;
  uint32_t last;
};

// Zero columns: combining marks, joiners, variation selectors, bidi marks (the ranges of Unicode 15 that occur in
// practice; a mark missing here costs one column of alignment, nothing else). Sorted.
constexpr Span kZeroWidth[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x05bf, 0x05bf}, {0x05c1, 0x05c2}, {0x0610, 0x061a},
    {0x064b, 0x065f}, {0x0670, 0x0670}, {0x06d6, 0x06dc}, {0x06df, 0x06e4}, {0x0900, 0x0902}, {0x093c, 0x093c},
    {0x0941, 0x0948}, {0x094d, 0x094d}, {0x0e31, 0x0e31}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e}, {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff}, {0x200b, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x2064}, {0x2066, 0x206f}, {0x20d0, 0x20ff},
    {0x302a, 0x302d}, {0x3099, 0x309a}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xe0100, 0xe01ef},
};
// Two columns: East Asian Width W and F (UAX #11) and emoji shown as pictures by default. Sorted.
constexpr Span kWide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},   {0x23f0, 0x23f0},   {0x23f3, 0x23f3},
    {0x25fd, 0x25fe},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x267f, 0x267f},   {0x2693, 0x2693},   {0x26a1, 0x26a1},
    {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},   {0x26ce, 0x26ce},   {0x26d4, 0x26d4},   {0x26ea, 0x26ea},
    {0x26f2, 0x26f3},   {0x26f5, 0x26f5},   {0x26fa, 0x26fa},   {0x26fd, 0x26fd},   {0x2705, 0x2705},   {0x270a, 0x270b},
    {0x2728, 0x2728},   {0x274c, 0x274c},   {0x274e, 0x274e},   {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2795, 0x2797},
    {0x27b0, 0x27b0},   {0x27bf, 0x27bf},   {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},   {0x2b55, 0x2b55},   {0x2e80, 0x303e},
    {0x3041, 0x3247},   {0x3250, 0x4dbf},   {0x4e00, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},
    {0xfe10, 0xfe19},   {0xfe30, 0xfe6f},   {0xff01, 0xff60},   {0xffe0, 0xffe6},   {0x16fe0, 0x18aff}, {0x1b000, 0x1b2ff},
    {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f200, 0x1f320}, {0x1f32d, 0x1f335},
    {0x1f337, 0x1f37c}, {0x1f37e, 0x1f393}, {0x1f3a0, 0x1f3ca}, {0x1f3cf, 0x1f3d3}, {0x1f3e0, 0x1f3f0}, {0x1f3f4, 0x1f3f4},
    {0x1f3f8, 0x1f43e}, {0x1f440, 0x1f440}, {0x1f442, 0x1f4fc}, {0x1f4ff, 0x1f53d}, {0x1f54b, 0x1f54e}, {0x1f550, 0x1f567},
    {0x1f57a, 0x1f57a}, {0x1f595, 0x1f596}, {0x1f5a4, 0x1f5a4}, {0x1f5fb, 0x1f64f}, {0x1f680, 0x1f6c5}, {0x1f6cc, 0x1f6cc},
    {0x1f6d0, 0x1f6d2}, {0x1f6d5, 0x1f6d7}, {0x1f6dc, 0x1f6df}, {0x1f6eb, 0x1f6ec}, {0x1f6f4, 0x1f6fc}, {0x1f7e0, 0x1f7eb},
    {0x1f7f0, 0x1f7f0}, {0x1f90c, 0x1f93a}, {0x1f93c, 0x1f945}, {0x1f947, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
};

template <size_t N>
bool within(const Span (&spans)[N], uint32_t code_point) {
  auto it = std::upper_bound(std::begin(spans), std::end(spans), code_point, [](uint32_t c, const Span& s) { return c < s.first; });
  return it != std::begin(spans) && code_point <= std::prev(it)->last;
}

bool is_control(uint32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }
// Invisible characters that reorder or hide what surrounds them: a value that holds one must not look like another value.
bool is_deceptive(uint32_t c) {
  return (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

void append_printable(std::string& out, std::string_view bytes, const Character& c) {
  if (!c.valid) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(bytes[0]));
  else if (c.code_point == '\n') out += "\\n";
  else if (c.code_point == '\t') out += "\\t";
  else if (c.code_point == '\r') out += "\\r";
  else if (c.code_point < 0x80 && is_control(c.code_point)) out += fmt::format("\\x{:02x}", c.code_point);
  else if (is_control(c.code_point) || is_deceptive(c.code_point)) out += fmt::format("\\u{:04x}", c.code_point);
  else out += bytes.substr(0, c.length);
}

}  // namespace

Character first_character(std::string_view text) {
  constexpr Character kBad{0xfffd, 1, false};
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return kBad;
  uint32_t code_point = lead & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return kBad;
    code_point = (code_point << 6) | (byte(i) & 0x3f);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code_point < kSmallest[length] || code_point > 0x10ffff || (code_point >= 0xd800 && code_point <= 0xdfff)) return kBad;
  return {code_point, length, true};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    uint64_t eight;  // most text is ASCII
    if (text.size() >= sizeof eight && (std::memcpy(&eight, text.data(), sizeof eight), (eight & 0x8080808080808080U) == 0)) {
      text.remove_prefix(sizeof eight);
      continue;
    }
    Character c = first_character(text);
    if (!c.valid) return false;
    text.remove_prefix(c.length);
  }
  return true;
}

size_t display_width(uint32_t code_point) {
  if (is_control(code_point) || within(kZeroWidth, code_point)) return 0;
  return within(kWide, code_point) ? 2 : 1;
}

size_t display_width(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    Character c = first_character(text);
    columns += display_width(c.code_point);
    text.remove_prefix(c.length);
  }
  return columns;
}

std::string_view fit_columns(std::string_view text, size_t columns) {
  size_t end = 0;
  size_t used = 0;
  while (end < text.size()) {
    Character c = first_character(text.substr(end));
    used += display_width(c.code_point);
    if (used > columns) break;
    end += c.length;
  }
  return text.substr(0, end);
}

std::string pad_right(std::string_view text, size_t columns) {
  std::string out(text);
  size_t width = display_width(text);
  if (width < columns) out.append(columns - width, ' ');
  return out;
}

std::string printable(std::string_view text, size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    Character c = first_character(text);
    if (out.size() + c.length > max_bytes) return out + "…";
    append_printable(out, text, c);
    text.remove_prefix(c.length);
  }
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (text.starts_with("\r\n")) text.remove_prefix(1);
    Character c = first_character(text);
    if (c.code_point == '\n' || c.code_point == '\t') out += text[0];
    else append_printable(out, text, c);
    text.remove_prefix(c.length);
  }
  return out;
}

std::string quote(std::string_view text, size_t max_bytes) {
  std::string out = "\"";
  size_t begin = out.size();
  while (!text.empty()) {
    Character c = first_character(text);
    if (out.size() - begin + c.length > max_bytes) return out + "…\"";
    if (c.code_point == '"' || c.code_point == '\\') out += '\\';
    append_printable(out, text, c);
    text.remove_prefix(c.length);
  }
  return out + '"';
}

}  // namespace phalanx::base
