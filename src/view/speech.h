// Talk in the user's language. A phrase is one constant with both texts, so neither can be forgotten; the arguments of
// both are checked when it is compiled:
//
//   inline constexpr Phrase<int, std::string_view> kRankFailed{"rank {} ({}) failed", "rank {}（{}）失败"};
//   speech(kRankFailed, 5, "gpu02")
//
// Arguments may be taken in another order with {0}, {1}. Codes, keys and JSON stay English and never come through here.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <type_traits>

#include "base/language.h"

namespace phalanx::view {

using base::Language;

template <typename... Args>
struct Phrase {
  fmt::format_string<Args...> english;
  fmt::format_string<Args...> chinese;
};

class Speech {
 public:
  explicit Speech(Language language) : language_(language) {}

  Language language() const { return language_; }
  template <typename... Args>
  std::string operator()(const Phrase<Args...>& phrase, const std::type_identity_t<Args>&... args) const {
    fmt::string_view text = language_ == Language::kChinese ? phrase.chinese : phrase.english;
    return fmt::vformat(text, fmt::make_format_args(args...));
  }

 private:
  Language language_;
};

// The value of a variable of the environment; "" when it is not set.
using Environment = std::function<std::string(const char* name)>;

// Whether the locale (LC_ALL, LC_CTYPE, LANG: the first that is set) writes UTF-8.
bool locale_is_utf8(const Environment& environment);
// PHALANX_LANG (en…, zh…) decides; else LC_ALL, LC_MESSAGES, LANG, where Chinese needs a UTF-8 locale to be written in.
Language choose_language(const Environment& environment);

}  // namespace phalanx::view
