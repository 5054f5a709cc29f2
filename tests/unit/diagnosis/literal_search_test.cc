#include "diagnosis/logs/literal_search.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace phalanx::diagnosis {
namespace {

std::multiset<std::pair<size_t, uint32_t>> found(const LiteralSearch& search, std::string_view text) {
  std::vector<LiteralSearch::Hit> hits;
  search.find(text, hits);
  std::multiset<std::pair<size_t, uint32_t>> out;
  for (const LiteralSearch::Hit& hit : hits) out.insert({hit.end, hit.literal});
  return out;
}

using Hits = std::multiset<std::pair<size_t, uint32_t>>;

TEST(LiteralSearch, FindsWordsInsideWords) {
  std::vector<std::string_view> words{"hers", "ushe", "shers", "hers"};
  LiteralSearch search(words);
  EXPECT_EQ(found(search, "ushers"), (Hits{{4, 1}, {6, 0}, {6, 2}, {6, 3}}));
  EXPECT_EQ(found(search, ""), Hits{});
  EXPECT_EQ(found(search, "xyz"), Hits{});
}

// Against the plain search, over texts made of few letters, where words overlap in every way.
TEST(LiteralSearch, AgreesWithThePlainSearch) {
  std::vector<std::string_view> words{"aaaa", "abab", "ababa", "babz", "abba", "bbbb", ""};
  words.back() = std::string_view("\xff\x00zb", 4);
  LiteralSearch search(words);
  uint32_t seed = 12345;
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) {
      seed = seed * 1664525 + 1013904223;
      text += std::string_view("abz\xff\x00", 5)[(seed >> 16) % 5];
    }
    Hits expected;
    for (uint32_t w = 0; w < words.size(); ++w)
      for (size_t at = text.find(words[w]); at != std::string::npos; at = text.find(words[w], at + 1))
        expected.insert({at + words[w].size(), w});
    EXPECT_EQ(found(search, text), expected);
  }
}

}  // namespace
}  // namespace phalanx::diagnosis
