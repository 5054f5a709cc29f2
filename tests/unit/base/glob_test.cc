#include "base/glob.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

namespace phalanx::base {
namespace {

TEST(Glob, Matches) {
  EXPECT_TRUE(glob_match("HF_*", "HF_HUB_OFFLINE"));
  EXPECT_TRUE(glob_match("HF_*", "HF_"));
  EXPECT_FALSE(glob_match("HF_*", "XHF_"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("*_PROXY", "HTTP_PROXY"));
  EXPECT_FALSE(glob_match("*_PROXY", "HTTP_PROXY2"));
  EXPECT_TRUE(glob_match("a*b*c", "aXbYbZc"));
  EXPECT_TRUE(glob_match("NCCL_?B", "NCCL_IB"));
  EXPECT_FALSE(glob_match("?", ""));
  EXPECT_TRUE(glob_match("RANK[0-9]", "RANK7"));
  EXPECT_FALSE(glob_match("RANK[!0-9]", "RANK7"));
  EXPECT_TRUE(glob_match("RANK[^0-9]", "RANKx"));
  EXPECT_TRUE(glob_match("[]]", "]"));
  EXPECT_TRUE(glob_match("[a-]", "-"));
  EXPECT_TRUE(glob_match("[*]", "*"));
  EXPECT_FALSE(glob_match("[*]", "x"));
  EXPECT_TRUE(glob_match("\\", "\\"));
}

TEST(Glob, RefusesMalformed) {
  for (std::string_view bad : {"", "[", "a[b", "[]", "[!]", "[z-a]", "x[!"}) {
    EXPECT_FALSE(Glob::compile(bad).ok()) << bad;
    EXPECT_FALSE(glob_match(bad, bad)) << bad;
  }
  EXPECT_FALSE(Glob::compile(std::string(1025, 'a')).ok());
  EXPECT_TRUE(Glob::compile(std::string(1024, '*')).ok());
}

TEST(Glob, PatternsThatExplodeElsewhereAreQuick) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(glob_match(pattern + "b", std::string(100'000, 'a')));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

// The definition, exponential and obviously right.
bool slow_match(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '*') return slow_match(pattern.substr(1), name) || (!name.empty() && slow_match(pattern, name.substr(1)));
  return !name.empty() && (pattern[0] == '?' || pattern[0] == name[0]) && slow_match(pattern.substr(1), name.substr(1));
}

TEST(Glob, AgreesWithTheDefinition) {
  std::mt19937 random(11);
  for (int i = 0; i < 20'000; ++i) {
    std::string pattern, name;
    for (size_t n = 1 + random() % 7; n > 0; --n) pattern += "ab?*"[random() % 4];
    for (size_t n = random() % 8; n > 0; --n) name += "ab"[random() % 2];
    ASSERT_EQ(glob_match(pattern, name), slow_match(pattern, name)) << pattern << " " << name;
  }
}

}  // namespace
}  // namespace phalanx::base
