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

TEST(LookStory, WhatTheRanksSpendTheirTimeOn) {
  base::Json look = {{"shares_ago_s", 40}, {"ranks", base::Json::array()}};
  for (int r = 0; r < 2; ++r) {
    look["ranks"].push_back(rank(r, "", "computes", false, 7));
    look["ranks"].back()["shares"] = {
        {"computing", r == 0 ? 0.3 : 0.9}, {"communicating", r == 0 ? 0.62 : 0.02}, {"loading", 0.08}, {"saving", 0}};
  }
  std::vector<std::string> lines = look_lines(look, base::Language::kEnglish);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1], "what the ranks spend their time on, 40 s ago:");
  EXPECT_EQ(lines[2], "  rank 0: 30 % computing, 62 % waiting for other ranks, 8 % loading data");
  EXPECT_EQ(lines[3], "  rank 1: 90 % computing, 2 % waiting for other ranks, 8 % loading data");
  for (int r = 2; r < 20; ++r) look["ranks"].push_back(look["ranks"][0]);
  lines = look_lines(look, base::Language::kEnglish);
  EXPECT_EQ(lines[2].find("  mean of 20 ranks: 33 % computing"), 0u) << lines[2];
  EXPECT_EQ(lines[3].find("  rank 1: 90 %"), 0u) << "who waits least comes first: " << lines[3];
  look["ranks"][0]["shares"] = {{"computing", 1e300}, {"loading", "much"}};
  look["ranks"][1]["shares"] = 7;
  EXPECT_FALSE(look_lines(look, base::Language::kEnglish).empty());
}

TEST(LookStory, AStepsTimeBesideThatOfFewerRanks) {
  auto run = [](const char* id, int world, double step, const char* program = "train.py") {
    logs::Run made;
    made.id = id;
    made.record = {{"id", id}, {"world_size", world}, {"command", {"python", program}}, {"workdir", "/data"}, {"step_s", step}};
    return made;
  };
  const logs::Run now = run("now", 8, 0.8);
  std::vector<logs::Run> all = {now, run("other", 2, 0.1, "x.py"), run("more", 16, 0.9), run("fewer", 2, 0.5), run("fewest", 1, 0.4)};
  EXPECT_EQ(scaling_line(now.record, 0.8, all, base::Language::kEnglish),
            "a step takes 0.8 s on 8 ranks; it took 0.5 s on 2 in run fewer: with the same batch for each rank, every rank gets 62 % of "
            "the work done "
            "that it got done there");
  EXPECT_EQ(scaling_line(now.record, std::nullopt, all, base::Language::kEnglish), "");
  EXPECT_EQ(scaling_line(now.record, 0.8, {now, run("more", 16, 0.9)}, base::Language::kEnglish), "");
  EXPECT_EQ(scaling_line(base::Json::object(), 0.8, all, base::Language::kEnglish), "");
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
