#include "cli/records/look_story.h"

#include <gtest/gtest.h>

namespace phalanx::cli {
namespace {

base::Json rank(int number, const char* place, const char* doing, bool waits, int step) {
  return {{"rank", number}, {"place", place}, {"doing", doing}, {"doing_zh", "等待"}, {"waits", waits}, {"step", step}};
}

TEST(LookStory, EqualRanksStandTogetherAndWhoeverIsWaitedForStandsOut) {
  base::Json look = {{"still_s", 34}, {"ranks", base::Json::array()}};
  for (int r : {0, 1, 3}) look["ranks"].push_back(rank(r, "train.py:30 (step)", "waits in a collective", true, r == 3 ? 19 : 20));
  look["ranks"].push_back(rank(2, "train.py:42 (save)", "computes: 99 % of a CPU", false, 19));
  std::vector<std::string> lines = look_lines(look, base::Language::kEnglish);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "no step and no output for 34 s");
  EXPECT_EQ(lines[1], "ranks that wait for others: 0–1, 3; the others wait for: 2");
  EXPECT_EQ(lines[2], "rank 2: train.py:42 (save), computes: 99 % of a CPU; last step 19");
  EXPECT_EQ(lines[3], "ranks 0–1, 3: train.py:30 (step), waits in a collective; last step 19–20");
  EXPECT_EQ(look_lines(look, base::Language::kChinese)[2], "rank 2：train.py:42 (save), 等待；最近一步为 19");
}

TEST(LookStory, WhatItDoesNotUnderstandIsLeftOut) {
  EXPECT_TRUE(look_lines(nullptr, base::Language::kEnglish).empty());
  EXPECT_TRUE(look_lines({{"ranks", 7}}, base::Language::kEnglish).empty());
  base::Json look = {{"ranks", {1, {{"rank", "x"}}, {{"rank", -4}}, {{"rank", 5}, {"place", 7}}, {{"rank", 6}, {"doing", "a\x1b[31mb"}}}}};
  std::vector<std::string> lines = look_lines(look, base::Language::kEnglish);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "rank 6: a\\x1b[31mb");
  EXPECT_EQ(lines[1], "rank 5: state unknown");
}

}  // namespace
}  // namespace phalanx::cli
