// The catalogue that was compiled from codes/: whole, in both languages, each code once.
#include "codes/code.h"

#include <gtest/gtest.h>

#include <set>

namespace phalanx::codes {
namespace {

TEST(Codes, EachHasItsWordsInBothLanguages) {
  for (const Code& code : all()) {
    SCOPED_TRACE(code.name);
    ASSERT_NE(code.group, nullptr);
    for (const base::Bilingual& words : {code.title, code.why, code.fix, code.group->title}) {
      EXPECT_FALSE(words.english.empty());
      EXPECT_FALSE(words.chinese.empty());
    }
    bool asks = code.group->part == Part::kChecks;
    EXPECT_EQ(!code.question.english.empty(), asks);
    EXPECT_EQ(!code.question.chinese.empty(), asks);
    EXPECT_NE(code.title.english.back(), '.');
  }
}

TEST(Codes, EachIsThereOnceAndStandsInItsGroup) {
  std::set<std::string_view> names;
  const Group* group = nullptr;
  size_t groups_seen = 0;
  for (const Code& code : all()) {
    EXPECT_TRUE(names.insert(code.name).second) << code.name;
    if (code.group != group) ++groups_seen;
    group = code.group;
  }
  EXPECT_GT(names.size(), 400u);
  EXPECT_EQ(groups_seen, groups().size());
}

TEST(Codes, AreFoundWhateverTheCase) {
  ASSERT_NE(find("host-lost"), nullptr);
  EXPECT_EQ(find("host-lost")->name, "HOST-LOST");
  EXPECT_EQ(find("HOST"), nullptr);
  EXPECT_EQ(find(""), nullptr);
  EXPECT_EQ(get("GPU-NONE").group->folder, "gpu");
}

}  // namespace
}  // namespace phalanx::codes
