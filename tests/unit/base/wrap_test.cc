#include "base/wrap.h"

#include <gtest/gtest.h>

#include <random>

#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::base {
namespace {

using Lines = std::vector<std::string>;

TEST(Wrap, AtBlanks) {
  EXPECT_EQ(wrap("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap("one  two ", 20), (Lines{"one two"}));
  EXPECT_EQ(wrap("", 5), (Lines{""}));
  EXPECT_EQ(wrap("a\nb", 5), (Lines{"a", "b"}));
  EXPECT_EQ(wrap("incomprehensibly so", 5), (Lines{"incomprehensibly", "so"}));
}

TEST(Wrap, BetweenWideCharactersButNotBeforeAComma) {
  EXPECT_EQ(wrap("每台主机上", 6), (Lines{"每台主", "机上"}));
  EXPECT_EQ(wrap("每台主，机上", 6), (Lines{"每台", "主，机", "上"}));
  EXPECT_EQ(wrap("每台（机）上", 6), (Lines{"每台", "（机）", "上"}));
  EXPECT_EQ(wrap("设置 PATH 变量", 7), (Lines{"设置", "PATH 变", "量"}));
  EXPECT_EQ(wrap("rank数", 5), (Lines{"rank", "数"}));
}

TEST(Wrap, EveryLineFitsAndNothingIsLost) {
  std::mt19937 random(21);
  const std::string_view pieces[] = {"a", "bc", " ", "漢", "字", "。", "（", "）", "--x", "é"};
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (size_t n = random() % 30; n > 0; --n) text += pieces[random() % std::size(pieces)];
    std::string joined;
    for (const std::string& line : wrap(text, 40)) {
      ASSERT_EQ(trim(line), line);
      joined += line;
    }
    ASSERT_EQ(replace_all(joined, " ", ""), replace_all(text, " ", ""));
  }
}

}  // namespace
}  // namespace phalanx::base
