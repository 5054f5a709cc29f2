#include "view/terminal/line_prefix.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace phalanx::view {
namespace {

constexpr Controls kPipe{false, false, true};
constexpr Controls kTerminal{true, true, true};

std::string dressed(std::string_view lines, const Controls& controls, std::string_view prefix = "[a:0] ") {
  std::string out = "before\n";
  append_prefixed(out, prefix, lines, controls);
  EXPECT_EQ(out.substr(0, 7), "before\n");
  return out.substr(7);
}

TEST(Dress, EveryLineGetsThePrefix) {
  EXPECT_EQ(dressed("one\n\ntwo\n", kPipe), "[a:0] one\n[a:0] \n[a:0] two\n");
  EXPECT_EQ(dressed("one\n", kPipe, ""), "one\n");
  EXPECT_EQ(dressed("", kPipe), "");
  EXPECT_EQ(dressed("no end", kPipe), "[a:0] no end\n");
}

TEST(Dress, OffATerminalOnlyEscapesAreTakenOut) {
  EXPECT_EQ(dressed("\x1b[31mred\x1b[0m \x1b]0;title\a\tx\x01\b\xff\n", kPipe), "[a:0] red \tx\x01\b\xff\n");
}

TEST(Dress, OnATerminalColoursStayAndEnd) {
  EXPECT_EQ(dressed("\x1b[1;31mred\n\x1b[38:2::1:2:3mx\x1b[0m\nplain\n", kTerminal),
            "[a:0] \x1b[1;31mred\x1b[0m\n[a:0] \x1b[38:2::1:2:3mx\x1b[0m\x1b[0m\n[a:0] plain\n");
}

TEST(Dress, OnATerminalNothingMovesTheCursor) {
  EXPECT_EQ(dressed("a\x1b[2Jb\x1b[10;10Hc\x1b[Ad\x1b"
                    "7e\x1b(0f\r\b\a\v\f\x0e\x7fg\x1b\n",
                    kTerminal),
            "[a:0] abcdefg\n");
  EXPECT_EQ(dressed("a\x1b]52;c;aGk=\x1b\\b\x1bP1$r\x1b\\c\n", kTerminal), "[a:0] abc\n") << "clipboard and device strings";
  EXPECT_EQ(dressed("a\xc2\x9b"
                    "2Jb\n",
                    kTerminal),
            "[a:0] a2Jb\n")
      << "CSI as one character";
  EXPECT_EQ(dressed("a\x9b"
                    "2Jb\n",
                    {true, true, false}),
            "[a:0] a2Jb\n")
      << "CSI as one byte";
  EXPECT_EQ(dressed("\xc2\xa9 漢字\n", kTerminal), "[a:0] \xc2\xa9 漢字\n");
}

TEST(Dress, AnUnfinishedEscapeDoesNotEatTheNextLine) {
  EXPECT_EQ(dressed("a\x1b]0;title\nb\x1b[3\nc\x1bP\nd\n", kTerminal), "[a:0] a\n[a:0] b\n[a:0] c\n[a:0] d\n");
}

TEST(Dress, NoColoursWhereTheyAreNotWanted) { EXPECT_EQ(dressed("\x1b[31mred\x1b[0m\n", {false, true, true}), "[a:0] red\n"); }

// Whatever bytes: on a terminal nothing is left but text, line ends and colours.
TEST(Dress, RandomBytesAreHarmless) {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t i = random() % 60; i > 0; --i) {
      const char* pieces[] = {"\x1b", "[", "]", "m", "A", "0;1", "\xc2", "\x9b", "\n", "x", "\r", "P", "\\", "\a"};
      text += pieces[random() % std::size(pieces)];
    }
    text += '\n';
    std::string out = dressed(text, kTerminal, "");
    EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), std::count(text.begin(), text.end(), '\n'));
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i] == '\x1b') {
        size_t end = out.find_first_not_of("0123456789;:", i + 2);
        ASSERT_TRUE(out[i + 1] == '[' && out[end] == 'm') << round;
      } else {
        ASSERT_TRUE(out[i] == '\n' || static_cast<unsigned char>(out[i]) >= 0x20) << round;
      }
    }
  }
}

}  // namespace
}  // namespace phalanx::view
