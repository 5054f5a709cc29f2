#include "words/message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "words/table.h"

namespace phalanx::words {
namespace {

using base::Language;

// Texts of the catalogue, so that the tests show what a user sees.
TEST(Words, AMessageIsInBothLanguages) {
  Message m = tr("{}: sm_lid is 0, state {}", "mlx5_0", "INIT");
  EXPECT_EQ(m.english, "mlx5_0: sm_lid is 0, state INIT");
  EXPECT_EQ(m.chinese, "mlx5_0：sm_lid 为 0，状态 INIT");
  EXPECT_EQ(tr(Language::kChinese, "{}: sm_lid is 0, state {}", "mlx5_0", "INIT"), m.chinese);
  EXPECT_EQ(tr(Language::kEnglish, "{}: sm_lid is 0, state {}", "mlx5_0", "INIT"), m.english);
}

TEST(Words, TheChineseOrdersItsArguments) { EXPECT_EQ(tr("load {:.1f} on {} CPUs", 3.25, 8).chinese, "8 个 CPU，负载 3.2"); }

TEST(Words, AMessageWithinAMessageIsInTheSameLanguage) {
  Message m = tr("{}: compute mode {}", "GPU 0", tr("exclusive, and in use"));
  EXPECT_EQ(m.english, "GPU 0: compute mode exclusive, and in use");
  EXPECT_EQ(m.chinese, "GPU 0：计算模式为 exclusive，且已被占用");
  EXPECT_EQ(tr(Language::kChinese, "{}: compute mode {}", "GPU 0", Text{"on"}), "GPU 0：计算模式为 开启");
}

TEST(Words, AnArgumentMayBeForTheChineseOnly) {
  Message m = tr(" and {} more", 2, chinese_only(6));
  EXPECT_EQ(m.english, " and 2 more");
  EXPECT_EQ(m.chinese, " 等 6 台");
}

TEST(Words, WithoutChineseTheEnglishAppears) {
  EXPECT_EQ(chinese_of("no such entry"), "");
  EXPECT_EQ(tr(Language::kChinese, "[{}] {}", 1, 2), "[1] 2");
  EXPECT_EQ(tr("[{}]", 1).in(Language::kChinese), "[1]");
}

TEST(Words, WhatFollowsTwoHashesIsNotShown) {
  constexpr Text kError{"error##count"};
  EXPECT_EQ(kError.in(Language::kEnglish), "error");
  EXPECT_EQ(kError.in(Language::kChinese), "个错误");
  EXPECT_EQ(Text{"error"}.in(Language::kChinese), "错误");
}

TEST(Words, ListsGrowInBothLanguages) {
  Message list;
  for (const char* name : {"a", "b", "c"}) list.add(tr(", "), tr("{}", name));
  EXPECT_EQ(list.english, "a, b, c");
  EXPECT_EQ(list.chinese, "a、b、c");
}

TEST(Words, AllArgumentsOfATextAreCounted) {
  static_assert(arguments_of("") == 0);
  static_assert(arguments_of("{} {:.1f} {{x}}") == 2);
  static_assert(arguments_of("{0} {0}") == 1);
  static_assert(arguments_of("{1}") == -1);  // the first is missing
}

TEST(Words, TheTableIsSorted) {
  ASSERT_FALSE(table().english.empty());
  EXPECT_EQ(table().chinese.size(), table().english.size());
  EXPECT_TRUE(std::is_sorted(table().english.begin(), table().english.end()));
  for (std::string_view english : table().english) EXPECT_FALSE(chinese_of(english).empty()) << english;
}

}  // namespace
}  // namespace phalanx::words
