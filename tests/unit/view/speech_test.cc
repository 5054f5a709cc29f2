#include "view/speech.h"

#include <gtest/gtest.h>

#include <map>

#include "view/phrases.h"

namespace phalanx::view {
namespace {

TEST(Speech, OnePhraseInBothLanguages) {
  EXPECT_EQ(Speech(Language::kEnglish)(kEtaPhrase, "3:20"), "ETA 3:20");
  EXPECT_EQ(Speech(Language::kEnglish)(kTimesPhrase, "8", "0–7"), "8 ranks 0–7");
  EXPECT_EQ(Speech(Language::kChinese)(kTimesPhrase, "8", "0–7"), "8 个 rank：0–7");
  EXPECT_EQ(Speech(Language::kChinese)(kEtaPhrase, "3:20"), "剩余 3:20");
}

Environment environment(std::map<std::string, std::string> values) {
  return [values](const char* name) {
    auto it = values.find(name);
    return it == values.end() ? std::string() : it->second;
  };
}

TEST(Speech, TheLanguageIsTheLocalesUnlessSaid) {
  auto chosen = [](std::map<std::string, std::string> values) { return choose_language(environment(std::move(values))); };
  EXPECT_EQ(chosen({}), Language::kEnglish);
  EXPECT_EQ(chosen({{"LANG", "zh_CN.UTF-8"}}), Language::kChinese);
  EXPECT_EQ(chosen({{"LANG", "zh_CN.UTF-8"}, {"LC_MESSAGES", "en_US.UTF-8"}}), Language::kEnglish);
  EXPECT_EQ(chosen({{"LANG", "en_US.UTF-8"}, {"LC_ALL", "zh_TW.utf8"}}), Language::kChinese);
  EXPECT_EQ(chosen({{"LANG", "zh_CN.GBK"}}), Language::kEnglish) << "we write UTF-8";
  EXPECT_EQ(chosen({{"LANG", "zh_CN.UTF-8"}, {"PHALANX_LANG", "en"}}), Language::kEnglish);
  EXPECT_EQ(chosen({{"LANG", "C"}, {"PHALANX_LANG", "zh"}}), Language::kChinese);
}

TEST(Speech, Utf8IsRead) {
  EXPECT_TRUE(locale_is_utf8(environment({{"LANG", "C.UTF-8"}})));
  EXPECT_TRUE(locale_is_utf8(environment({{"LC_CTYPE", "en_US.utf8"}, {"LANG", "C"}})));
  EXPECT_FALSE(locale_is_utf8(environment({{"LC_ALL", "C"}, {"LANG", "en_US.UTF-8"}})));
  EXPECT_FALSE(locale_is_utf8(environment({})));
}

}  // namespace
}  // namespace phalanx::view
