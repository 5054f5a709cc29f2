// The two languages we speak to people. Codes, keys and JSON stay English.
#pragma once

#include <string_view>

namespace phalanx::base {

enum class Language { kEnglish, kChinese };

// One message in both languages; the English is always there.
struct Bilingual {
  std::string_view english;
  std::string_view chinese;

  constexpr std::string_view in(Language language) const { return language == Language::kChinese && !chinese.empty() ? chinese : english; }
};

// PHALANX_LANG ("en…" or "zh…") decides; else the first of LC_ALL, LC_MESSAGES, LANG that is not empty (POSIX order).
// Pass "" for a variable that is not set. Anything that does not start with "zh" is English.
Language choose_language(std::string_view phalanx_lang, std::string_view lc_all, std::string_view lc_messages, std::string_view lang);

}  // namespace phalanx::base
