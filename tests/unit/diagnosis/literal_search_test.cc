#include "diagnosis/logs/literal_search.h"

#include <gtest/gtest.h>

#include <set>
#include <span>
#include <string>

#include "diagnosis/logs/scan_words.h"

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

Hits found_plainly(std::span<const std::string_view> words, std::string_view text) {
  Hits out;
  for (uint32_t w = 0; w < words.size(); ++w)
    for (size_t at = text.find(words[w]); at != text.npos; at = text.find(words[w], at + 1)) out.insert({at + words[w].size(), w});
  return out;
}

// Against the plain search, over texts made of few letters, where words overlap in every way.
TEST(LiteralSearch, AgreesWithThePlainSearch) {
  std::vector<std::string_view> words{"aaaa", "abab", "ababa", "babz", "abba", "bbbb", "abzabzab", ""};
  words.back() = std::string_view("\xff\x00zb", 4);
  LiteralSearch search(words);
  uint32_t seed = 12345;
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) {
      seed = seed * 1664525 + 1013904223;
      text += std::string_view("abz\xff\x00", 5)[(seed >> 16) % 5];
    }
    EXPECT_EQ(found(search, text), found_plainly(words, text));
  }
}

// What the parts of a text hold and what stands across their seams is what the text holds.
TEST(LiteralSearch, FindsAcrossSeamsWhatThePartsAloneDoNotHold) {
  std::vector<std::string_view> words{"aaaa", "abab", "ababa", "babz", "a bb", "bb a ", " b a", "abba", "bbbb", "abzabzab", "aabaabaabaab"};
  LiteralSearch search(words);
  uint32_t seed = 54321;
  auto next = [&](uint32_t below) {
    seed = seed * 1664525 + 1013904223;
    return (seed >> 16) % below;
  };
  for (int round = 0; round < 2000; ++round) {
    std::string whole;
    std::vector<LiteralSearch::Seam> seams;
    Hits expected;
    for (uint32_t part = 0, parts = 1 + next(5); part < parts; ++part) {
      const size_t begin = whole.size();
      if (part > 0 && next(2) == 0) whole += ' ';
      if (part > 0) seams.push_back({begin, whole.size()});
      std::string text;
      for (uint32_t i = 0, size = next(20); i < size; ++i) text += "aaabbz "[next(7)];
      for (const auto& [end, literal] : found(search, text)) expected.insert({whole.size() + end, literal});
      whole += text;
    }
    std::vector<LiteralSearch::Hit> across;
    search.find_across(whole, seams, across);
    for (const LiteralSearch::Hit& hit : across) expected.insert({hit.end, hit.literal});
    EXPECT_EQ(found(search, whole), expected) << whole;
  }
  std::vector<LiteralSearch::Hit> none;
  LiteralSearch({}).find_across("ab", std::vector<LiteralSearch::Seam>{{1, 1}}, none);
  EXPECT_TRUE(none.empty());
}

// Every word that a scan looks for, at even and odd places, at the beginning and the end of a text, and behind any byte.
TEST(LiteralSearch, FindsEveryWordWhereverItStands) {
  std::vector<std::string_view> words(kExtra.begin(), kExtra.end());
  words.insert(words.end(), bug_literals().begin(), bug_literals().end());
  for (const Signature& signature : codes::signatures()) words.push_back(signature.literal);
  LiteralSearch search(words);
  for (uint32_t w = 0; w < words.size(); ++w) {
    for (size_t in_front = 0; in_front < 5; ++in_front)
      for (size_t after = 0; after < 2; ++after) {
        const std::string text = std::string(in_front, static_cast<char>(w)) + std::string(words[w]) + std::string(after, '\n');
        EXPECT_TRUE(found(search, text).contains({in_front + words[w].size(), w})) << words[w];
      }
    EXPECT_FALSE(found(search, words[w].substr(1)).contains({words[w].size() - 1, w})) << words[w];
    EXPECT_FALSE(found(search, words[w].substr(0, words[w].size() - 1)).contains({words[w].size(), w})) << words[w];
  }
}

}  // namespace
}  // namespace phalanx::diagnosis
