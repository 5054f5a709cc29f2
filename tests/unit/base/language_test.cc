#include "base/language.h"

#include <gtest/gtest.h>

namespace phalanx::base {
namespace {

TEST(Language, FirstThatIsSetDecides) {
  EXPECT_EQ(choose_language("", "", "", ""), Language::kEnglish);
  EXPECT_EQ(choose_language("", "", "", "zh_CN.UTF-8"), Language::kChinese);
  EXPECT_EQ(choose_language("", "C", "zh_CN.UTF-8", "zh_CN.UTF-8"), Language::kEnglish);
  EXPECT_EQ(choose_language("", "", "zh_TW", "de_DE"), Language::kChinese);
  EXPECT_EQ(choose_language("en", "zh_CN", "zh_CN", "zh_CN"), Language::kEnglish);
  EXPECT_EQ(choose_language("zh", "C", "C", "C"), Language::kChinese);
}

TEST(Language, EnglishStandsInForAMissingTranslation) {
  EXPECT_EQ((Bilingual{"yes", ""}.in(Language::kChinese)), "yes");
  EXPECT_EQ((Bilingual{"yes", "是"}.in(Language::kChinese)), "是");
}

}  // namespace
}  // namespace phalanx::base
