#include "base/language.h"

namespace phalanx::base {

Language choose_language(std::string_view phalanx_lang, std::string_view lc_all, std::string_view lc_messages, std::string_view lang) {
  for (std::string_view value : {phalanx_lang, lc_all, lc_messages, lang})
    if (!value.empty()) return value.starts_with("zh") ? Language::kChinese : Language::kEnglish;
  return Language::kEnglish;
}

}  // namespace phalanx::base
