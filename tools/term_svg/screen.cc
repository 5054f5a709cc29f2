#include "term_svg/screen.h"

#include <algorithm>
#include <cstdlib>

#include "base/unicode.h"

namespace phalanx::term_svg {
namespace {

constexpr size_t kMostRows = 10'000;

std::vector<int> numbers(std::string_view parameters) {
  std::vector<int> out(1, 0);
  for (char c : parameters) {
    if (c >= '0' && c <= '9') out.back() = std::min(out.back() * 10 + (c - '0'), 1'000'000);
    else if (c == ';' || c == ':') out.push_back(0);
  }
  return out;
}

// The length of the escape sequence at the start of `bytes`, or 0 while its end has not come.
size_t sequence_length(std::string_view bytes) {
  if (bytes.size() < 2) return 0;
  if (bytes[1] == '[') {
    for (size_t i = 2; i < bytes.size(); ++i)
      if (bytes[i] >= 0x40 && bytes[i] <= 0x7e) return i + 1;
    return 0;
  }
  if (bytes[1] == ']') {  // a title or a link, ended by BEL or ESC backslash
    for (size_t i = 2; i < bytes.size(); ++i) {
      if (bytes[i] == '\a') return i + 1;
      if (bytes[i] == '\\' && bytes[i - 1] == '\x1b') return i + 1;
    }
    return 0;
  }
  return 2;
}

size_t expected_length(unsigned char lead) {
  if (lead >= 0xf0) return 4;
  if (lead >= 0xe0) return 3;
  return lead >= 0xc0 ? 2 : 1;
}

}  // namespace

void Screen::feed(std::string_view bytes) {
  pending_.append(bytes);
  std::string_view rest = pending_;
  while (!rest.empty()) {
    if (rest[0] == '\x1b') {
      size_t length = sequence_length(rest);
      if (length == 0) break;
      if (rest[1] == '[') sequence(rest.substr(2, length - 3), rest[length - 1]);
      rest.remove_prefix(length);
    } else if (static_cast<unsigned char>(rest[0]) < 0x20) {
      control(rest[0]);
      rest.remove_prefix(1);
    } else {
      if (rest.size() < expected_length(static_cast<unsigned char>(rest[0]))) break;
      base::Character character = base::first_character(rest);
      put(character.valid ? rest.substr(0, character.length) : std::string_view("\xef\xbf\xbd"));
      rest.remove_prefix(character.length);
    }
  }
  pending_ = std::string(rest);
}

Row& Screen::row() {
  line_ = std::min(line_, kMostRows);
  if (rows_.size() <= line_) rows_.resize(line_ + 1);
  return rows_[line_];
}

void Screen::put(std::string_view character) {
  size_t width = base::display_width(character);
  if (width == 0) {
    if (column_ > 0 && row().size() >= column_) row()[column_ - 1].text += character;
    return;
  }
  if (column_ + width > columns_) {
    ++line_;
    column_ = 0;
  }
  Row& cells = row();
  if (cells.size() < column_ + width) cells.resize(column_ + width);
  cells[column_] = {std::string(character), style_};
  if (width == 2) cells[column_ + 1] = {"", style_};
  column_ += width;
}

void Screen::control(char c) {
  if (c == '\r') column_ = 0;
  if (c == '\b' && column_ > 0) --column_;
  if (c == '\t') column_ = std::min(columns_ - 1, (column_ / 8 + 1) * 8);
  if (c == '\n') {
    ++line_;
    row();
  }
}

void Screen::erase_line(int mode) {
  Row& cells = row();
  if (mode == 0 && cells.size() > column_) cells.resize(column_);
  if (mode == 1) std::fill_n(cells.begin(), std::min(column_ + 1, cells.size()), Cell{});
  if (mode == 2) cells.clear();
}

void Screen::erase_screen(int mode) {
  if (mode == 0) {
    erase_line(0);
    rows_.resize(line_ + 1);
  } else if (mode >= 2) {
    for (Row& cells : rows_) cells.clear();
  }
}

void Screen::sequence(std::string_view parameters, char final) {
  if (!parameters.empty() && parameters[0] == '?') return;  // modes: a cursor hidden, a paste bracketed
  std::vector<int> values = numbers(parameters);
  size_t count = static_cast<size_t>(std::max(values[0], 1));
  switch (final) {
    case 'm': set_style(values); break;
    case 'K': erase_line(values[0]); break;
    case 'J': erase_screen(values[0]); break;
    case 'A': line_ -= std::min(line_, count); break;
    case 'B': line_ += count; break;
    case 'C': column_ = std::min(columns_ - 1, column_ + count); break;
    case 'D': column_ -= std::min(column_, count); break;
    case 'E':
      line_ += count;
      column_ = 0;
      break;
    case 'F':
      line_ -= std::min(line_, count);
      column_ = 0;
      break;
    case 'G': column_ = std::min(columns_, count) - 1; break;
    default: break;
  }
}

void Screen::set_style(const std::vector<int>& codes) {
  for (size_t i = 0; i < codes.size(); ++i) {
    int code = codes[i];
    if (code == 0) style_ = {};
    else if (code == 1) style_.bold = true;
    else if (code == 2) style_.dim = true;
    else if (code == 3) style_.italic = true;
    else if (code == 4) style_.underline = true;
    else if (code == 7) style_.reverse = true;
    else if (code == 22) style_.bold = style_.dim = false;
    else if (code == 23) style_.italic = false;
    else if (code == 24) style_.underline = false;
    else if (code == 27) style_.reverse = false;
    else if (code >= 30 && code <= 37) style_.foreground = code - 30;
    else if (code == 39) style_.foreground = kDefaultColor;
    else if (code >= 40 && code <= 47) style_.background = code - 40;
    else if (code == 49) style_.background = kDefaultColor;
    else if (code >= 90 && code <= 97) style_.foreground = code - 82;
    else if (code >= 100 && code <= 107) style_.background = code - 92;
    else if (code == 38 || code == 48) {
      int& color = code == 38 ? style_.foreground : style_.background;
      if (i + 2 < codes.size() && codes[i + 1] == 5) {
        color = codes[i + 2] & 0xff;
        i += 2;
      } else if (i + 4 < codes.size() && codes[i + 1] == 2) {
        color = 256 + ((codes[i + 2] & 0xff) << 16 | (codes[i + 3] & 0xff) << 8 | (codes[i + 4] & 0xff));
        i += 4;
      }
    }
  }
}

std::string text(const Row& row) {
  std::string out;
  for (const Cell& cell : row) out += cell.text;
  size_t end = out.find_last_not_of(' ');
  return end == std::string::npos ? "" : out.substr(0, end + 1);
}

}  // namespace phalanx::term_svg
