#include "tune/tokenizer/split_regex.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/check.h"
#include "base/unicode.h"
#include "tune/tokenizer/pre_tokenizer.h"

namespace phalanx::tune {
namespace {

using Words = std::vector<std::string>;

std::shared_ptr<const SplitRegex> compiled(std::string_view pattern, SplitBehavior behavior, bool invert) {
  auto regex = SplitRegex::compile(pattern, false, behavior, invert);
  PHALANX_CHECK(regex.ok());
  return *regex;
}

Words words(const SplitRegex& regex, std::string_view text) {
  Words out;
  regex.split(text, [&](std::string_view word) { out.emplace_back(word); });
  return out;
}

Words split(std::string_view pattern, SplitBehavior behavior, bool invert, std::string_view text) {
  return words(*compiled(pattern, behavior, invert), text);
}

// The cases of the tokenizers library itself, tokenizers/src/pre_tokenizers/split.rs.
TEST(SplitRegex, BehavesAsTheLibrary) {
  constexpr std::string_view kPattern = R"(\w+|[^\w\s]+)", kText = "How are you doing?";
  EXPECT_EQ(split(kPattern, SplitBehavior::kRemoved, true, kText), (Words{"How", "are", "you", "doing", "?"}));
  EXPECT_EQ(split(kPattern, SplitBehavior::kIsolated, true, kText), (Words{"How", " ", "are", " ", "you", " ", "doing", "?"}));
  EXPECT_EQ(split(kPattern, SplitBehavior::kMergedWithPrevious, true, kText), (Words{"How ", "are ", "you ", "doing", "?"}));
  EXPECT_EQ(split(kPattern, SplitBehavior::kMergedWithNext, true, kText), (Words{"How", " are", " you", " doing", "?"}));
  EXPECT_EQ(split(kPattern, SplitBehavior::kContiguous, true, kText), (Words{"How", " ", "are", " ", "you", " ", "doing?"}));
  // Empty matches cut, but are no words. The \p{Han} of DeepSeek's pattern, and an intersection, which only Oniguruma has.
  EXPECT_EQ(split("x*", SplitBehavior::kIsolated, false, "axxb"), (Words{"a", "xx", "b"}));
  EXPECT_EQ(split(R"(\p{Han}+|[\w&&[^\p{Han}]]+)", SplitBehavior::kIsolated, false, "ab训练12"), (Words{"ab", "训练", "12"}));
}

TEST(SplitRegex, RefusesWhatIsNoPattern) {
  auto cause = [](std::string_view pattern) { return SplitRegex::compile(pattern, false, SplitBehavior::kIsolated, false).error().cause; };
  EXPECT_EQ(cause("(a"), "the split pattern \"(a\" is malformed: end pattern with unmatched parenthesis");
  EXPECT_NE(cause(""), "");
  EXPECT_NE(cause("\xFF"), "");
  EXPECT_NE(cause(std::string(1000, '(') + std::string(1000, ')')), "");
  auto slow = SplitRegex::compile("(x+x+)+y", false, SplitBehavior::kIsolated, false);
  ASSERT_TRUE(slow.ok());
  (*slow)->split("xxy", [](std::string_view) {});
  EXPECT_FALSE((*slow)->gave_up());
  (*slow)->split(std::string(64, 'x'), [](std::string_view) {});
  EXPECT_TRUE((*slow)->gave_up());
}

// Two implementations of the same patterns.
TEST(SplitRegex, AgreesWithTheScanners) {
  std::mt19937 random(7);
  constexpr std::string_view kParts[] = {"a",
                                         "B",
                                         "'s",
                                         "'LL",
                                         "'\xC5\xBF",
                                         "1",
                                         "\xD9\xA3",
                                         " ",
                                         "  ",
                                         "\t",
                                         "\n",
                                         "\r\n",
                                         ".",
                                         "--",
                                         "\xE8\xAE\xAD",
                                         "\xCC\x81",
                                         "\xC2\xA0",
                                         "\xE3\x80\x80",
                                         "\xC2\x85",
                                         "\xF0\x9F\x98\x80",
                                         "'",
                                         "re",
                                         "ve",
                                         "\xE2\x85\xA7"};
  for (SplitPattern pattern : {SplitPattern::kGpt2, SplitPattern::kLlama3, SplitPattern::kQwen2}) {
    const auto regex = compiled(regex_of(pattern), SplitBehavior::kIsolated, false);
    for (int i = 0; i < 3000; ++i) {
      std::string text;
      for (uint32_t parts = 1 + random() % 12; parts > 0; --parts) text += kParts[random() % std::size(kParts)];
      Words scanned;
      for_each_word(text, {.stages = {{.pattern = pattern}}}, [&](std::string_view word) { scanned.emplace_back(word); });
      ASSERT_EQ(scanned, words(*regex, text)) << base::quote(text);
    }
  }
}

}  // namespace
}  // namespace phalanx::tune
