#include "base/name_ranges.h"

#include <gtest/gtest.h>

#include <random>

#include "base/text.h"

namespace phalanx::base {
namespace {

using Names = std::vector<std::string>;

Names expand(std::string_view word) {
  auto names = expand_names(word, 1000);
  EXPECT_TRUE(names.ok()) << word;
  return names.ok() ? *names : Names{};
}

TEST(NameRanges, Expand) {
  EXPECT_EQ(expand("gpu"), (Names{"gpu"}));
  EXPECT_EQ(expand(""), (Names{""}));
  EXPECT_EQ(expand("gpu[01-04,7]"), (Names{"gpu01", "gpu02", "gpu03", "gpu04", "gpu7"}));
  EXPECT_EQ(expand("[9-11]"), (Names{"9", "10", "11"}));
  EXPECT_EQ(expand("n[08-11]-ib0"), (Names{"n08-ib0", "n09-ib0", "n10-ib0", "n11-ib0"}));
  EXPECT_EQ(expand("r[1-2]n[0,3]"), (Names{"r1n0", "r1n3", "r2n0", "r2n3"}));
  EXPECT_EQ(expand("a[5-5]"), (Names{"a5"}));
  EXPECT_EQ(expand("a[000-001]"), (Names{"a000", "a001"}));
}

TEST(NameRanges, FaultsNameTheirPlace) {
  struct Case {
    std::string_view word;
    size_t at;
    std::string_view message;
  };
  for (const Case& c :
       {Case{"gpu[01", 3, "'[' is not closed"}, Case{"gpu[", 3, "'[' is not closed"}, Case{"gpu[1-", 3, "'[' is not closed"},
        Case{"gpu]", 3, "']' closes no bracket"}, Case{"gpu[]", 4, "a number is missing in the bracket"},
        Case{"gpu[1,]", 6, "a number is missing in the bracket"}, Case{"gpu[-1]", 4, "a number is missing in the bracket"},
        Case{"gpu[a]", 4, "a number is missing in the bracket"}, Case{"gpu[1 ]", 5, "only numbers, '-' and ',' may stand in a bracket"},
        Case{"gpu[1[2]]", 5, "only numbers, '-' and ',' may stand in a bracket"}, Case{"gpu[4-1]", 4, "the range 4-1 runs backwards"},
        Case{"gpu[1-010]", 4, "the ends of 1-010 differ in width"}, Case{"gpu[001-10]", 4, "the ends of 001-10 differ in width"},
        Case{"gpu[1234567890123456]", 4, "a number of 16 digits is too long"},
        Case{"gpu[0-1000]", 3, "the ranges make more than 1000 names"},
        Case{"gpu[0-999999999999999]", 3, "the ranges make more than 1000 names"},
        Case{"a[0-99]b[0-99]", 8, "the ranges make more than 1000 names"}}) {
    RangeFault fault;
    auto names = expand_names(c.word, 1000, &fault);
    ASSERT_FALSE(names.ok()) << c.word;
    EXPECT_EQ(fault.at, c.at) << c.word;
    EXPECT_EQ(fault.message, c.message) << c.word;
  }
}

TEST(NameRanges, ManyBracketsCannotOverflowTheCount) {
  std::string word;
  for (int i = 0; i < 1000; ++i) word += "[0-9]";
  EXPECT_FALSE(expand_names(word, 65'536).ok());
  std::string ones;
  for (int i = 0; i < 255; ++i) ones += "[1]";
  EXPECT_EQ(expand_names(ones, 1)->size(), 1u);
  EXPECT_FALSE(expand_names(ones + "[1]", 1).ok());
  EXPECT_FALSE(expand_names(std::string(256, 'a'), 1).ok());
}

TEST(NameRanges, Fold) {
  EXPECT_EQ(fold_names(Names{"gpu01", "gpu02", "gpu04", "login"}), (Names{"gpu[01-02,04]", "login"}));
  EXPECT_EQ(fold_names(Names{"n9", "n10", "n11"}), (Names{"n[9-11]"}));
  EXPECT_EQ(fold_names(Names{"n08", "n09", "n10"}), (Names{"n[08-10]"}));
  EXPECT_EQ(fold_names(Names{"n99", "n100"}), (Names{"n[99-100]"}));
  EXPECT_EQ(fold_names(Names{"n099", "n100"}), (Names{"n[099-100]"}));
  EXPECT_EQ(fold_names(Names{"n09", "n010"}), (Names{"n[09,010]"}));
  EXPECT_EQ(fold_names(Names{"a", "b"}), (Names{"a", "b"}));
  EXPECT_EQ(fold_names(Names{"solo7"}), (Names{"solo7"}));
  EXPECT_TRUE(fold_names(Names{}).empty());
}

TEST(NameRanges, ExpandingWhatWasFoldedGivesTheSameList) {
  std::mt19937 random(2);
  for (int round = 0; round < 5000; ++round) {
    Names names;
    for (size_t n = random() % 12; n > 0; --n) {
      std::string name(1, "ab"[random() % 2]);
      unsigned number = random() % 3 == 0 ? random() % 200 : static_cast<unsigned>(names.size()) + 95;
      std::string digits = std::to_string(number);
      if (random() % 3 == 0) digits.insert(0, random() % 3, '0');
      name += digits;
      if (random() % 4 == 0) name += "-ib";
      names.push_back(name);
    }
    Names again;
    for (const std::string& word : fold_names(names))
      for (const std::string& name : expand(word)) again.push_back(name);
    ASSERT_EQ(again, names) << join(names, " ") << " | " << join(fold_names(names), " ");
  }
}

TEST(NameRanges, RandomWordsNeverCrash) {
  std::mt19937 random(4);
  for (int round = 0; round < 50'000; ++round) {
    std::string word;
    for (size_t n = random() % 10; n > 0; --n) word += "a0019[]-,"[random() % 9];
    auto names = expand_names(word, 200);
    if (names.ok()) {
      ASSERT_LE(names->size(), 200u);
      ASSERT_GE(names->size(), 1u);
    }
  }
}

}  // namespace
}  // namespace phalanx::base
