#include "base/wrap.h"

#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::base {
namespace {

// What cannot be broken: a word, or one wide character with the punctuation that sticks to it.
struct Unit {
  std::string text;
  size_t columns = 0;
  bool blank_before = false;
};

bool closes(uint32_t c) {
  switch (c) {
    case 0x3001:
    case 0x3002:
    case 0x300b:
    case 0x300d:
    case 0x300f:
    case 0x3011:  // 、。》」』】
    case 0xff01:
    case 0xff09:
    case 0xff0c:
    case 0xff1a:
    case 0xff1b:
    case 0xff1f: return true;  // ！），：；？
    default: return false;
  }
}

bool opens(uint32_t c) {
  return c == 0xff08 || c == 0x300a || c == 0x300c || c == 0x300e || c == 0x3010;  // （《「『【
}

class Splitter {
 public:
  std::vector<Unit> split(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
      Character c = first_character(text.substr(i));
      take(c, text.substr(i, c.length));
      i += c.length;
    }
    finish();
    return std::move(units_);
  }

 private:
  void take(const Character& c, std::string_view bytes) {
    bool wide = display_width(c.code_point) == 2;
    if (bytes == " " || bytes == "\t") {
      finish();
      blank_ = true;
      return;
    }
    bool sticks = unit_.text.empty() || after_opening_ || closes(c.code_point) || (!wide && !after_wide_);
    if (!sticks) finish();
    if (unit_.text.empty()) unit_.blank_before = std::exchange(blank_, false);
    unit_.text += bytes;
    unit_.columns += display_width(c.code_point);
    after_wide_ = wide;
    after_opening_ = opens(c.code_point);
  }

  void finish() {
    if (!unit_.text.empty()) units_.push_back(std::exchange(unit_, {}));
    after_wide_ = after_opening_ = false;
  }

  std::vector<Unit> units_;
  Unit unit_;
  bool blank_ = false;
  bool after_wide_ = false;
  bool after_opening_ = false;
};

void wrap_paragraph(std::string_view text, size_t columns, std::vector<std::string>& lines) {
  std::string line;
  size_t used = 0;
  for (const Unit& unit : Splitter().split(text)) {
    size_t blank = unit.blank_before && used > 0 ? 1 : 0;
    if (used > 0 && used + blank + unit.columns > columns) {
      lines.push_back(std::exchange(line, {}));
      used = blank = 0;
    }
    line.append(blank, ' ');
    line += unit.text;
    used += blank + unit.columns;
  }
  lines.push_back(std::move(line));
}

}  // namespace

std::vector<std::string> wrap(std::string_view text, size_t columns) {
  std::vector<std::string> lines;
  for (std::string_view paragraph : split(text, '\n')) wrap_paragraph(paragraph, columns, lines);
  return lines;
}

}  // namespace phalanx::base
