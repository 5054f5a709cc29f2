#include <gtest/gtest.h>

#include "term_svg/picture.h"
#include "term_svg/screen.h"

namespace phalanx::term_svg {
namespace {

std::vector<std::string> show(std::string_view bytes, size_t columns = 20) {
  Screen screen(columns);
  for (char c : bytes) screen.feed(std::string_view(&c, 1));  // every cut
  std::vector<std::string> out;
  for (size_t i = 0; i < screen.rows().size(); ++i) out.push_back(text(screen.rows()[i]));
  return out;
}
using Lines = std::vector<std::string>;

TEST(Screen, LinesReturnsAndWrapping) {
  EXPECT_EQ(show("ab\r\ncd"), (Lines{"ab", "cd"}));
  EXPECT_EQ(show("12%\r50%"), Lines{"50%"});
  EXPECT_EQ(show("abcdef", 4), (Lines{"abcd", "ef"}));
  EXPECT_EQ(show("ab\bc\tx"), Lines{"ac      x"});
}

TEST(Screen, ErasingAndMoving) {
  EXPECT_EQ(show("bar\r\x1b[Kline\r\nbar 2"), (Lines{"line", "bar 2"}));
  EXPECT_EQ(show("a\r\nb\r\nc\x1b[2A\rX"), (Lines{"X", "b", "c"}));
  EXPECT_EQ(show("a\r\nb\r\nc\x1b[2A\r\x1b[J"), Lines{""});
  EXPECT_EQ(show("abcd\x1b[3GX"), Lines{"abXd"});
}

TEST(Screen, WideAndBrokenCharacters) {
  EXPECT_EQ(show("训练", 4), Lines{"训练"});
  EXPECT_EQ(show("训练好", 5), (Lines{"训练", "好"}));
  EXPECT_EQ(show("a\xff"
                 "bcd"),
            Lines{"a\xef\xbf\xbd"
                  "bcd"});
}

TEST(Screen, ModesTitlesAndUnknownSequencesLeaveNothing) {
  EXPECT_EQ(show("\x1b[?25la\x1b]0;title\ab\x1b[5qc\x1b]8;;x\x1b\\d\x1b=e"), Lines{"abcde"});
}

TEST(Screen, Styles) {
  Screen screen(20);
  screen.feed("\x1b[1;31mr\x1b[0mn\x1b[38;5;208mo\x1b[48;2;1;2;3mb\x1b[39;49mp");
  const Row& row = screen.rows()[0];
  EXPECT_TRUE(row[0].style.bold);
  EXPECT_EQ(row[0].style.foreground, 1);
  EXPECT_EQ(row[1].style, Style{});
  EXPECT_EQ(row[2].style.foreground, 208);
  EXPECT_EQ(row[3].style.background, 256 + 0x010203);
  EXPECT_EQ(row[4].style, Style{});
}

TEST(Picture, TextIsEscapedAndRunsAreMerged) {
  Screen screen(20);
  screen.feed("a<b & \x1b[31mred\x1b[0m\r\n");
  std::string svg = to_svg(screen.rows(), 20, "t & u");
  EXPECT_NE(svg.find(">a&lt;b &amp; </text>"), std::string::npos);
  EXPECT_NE(svg.find(" fill=\"#e06c75\">red</text>"), std::string::npos);
  EXPECT_NE(svg.find("<title>t &amp; u</title>"), std::string::npos);
  EXPECT_NE(svg.find("height=\"69\""), std::string::npos);  // one row: the empty last one is not drawn
}

}  // namespace
}  // namespace phalanx::term_svg
