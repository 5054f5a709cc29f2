// A terminal's screen, as much of one as our own output needs: text, carriage return, line feed, backspace, tab, cursor
// movement, erasing, colours. It has no last row: what would scroll away stays. Unknown sequences are ignored. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::term_svg {

inline constexpr int kDefaultColor = -1;

struct Style {
  int foreground = kDefaultColor;  // 0–255: the terminal's palette; from 256: 256 + 0xRRGGBB
  int background = kDefaultColor;
  bool bold = false, dim = false, italic = false, underline = false, reverse = false;
  bool operator==(const Style&) const = default;
};

struct Cell {
  std::string text = " ";  // one character with its combining marks; empty behind a wide one
  Style style;
};

using Row = std::vector<Cell>;

class Screen {
 public:
  explicit Screen(size_t columns) : columns_(columns) {}
  // Any bytes, any cut.
  void feed(std::string_view bytes);
  // From the top to the last row ever touched. Rows are as long as what was written into them.
  const std::vector<Row>& rows() const { return rows_; }

 private:
  void put(std::string_view character);
  void control(char c);
  void sequence(std::string_view parameters, char final);
  void erase_line(int mode);
  void erase_screen(int mode);
  void set_style(const std::vector<int>& codes);
  Row& row();

  size_t columns_;
  size_t line_ = 0, column_ = 0;
  Style style_;
  std::string pending_;  // the start of a character or sequence whose rest has not come
  std::vector<Row> rows_{1};
};

std::string text(const Row& row);  // without trailing spaces

}  // namespace phalanx::term_svg
