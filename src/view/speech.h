// Talk in the user's language: a language, and phrases (words/message.h) said in it.
//
//   inline constexpr Phrase<int, std::string_view> kRankFailed{"rank {} ({}) failed"};
//   speech(kRankFailed, 5, "gpu02")
#pragma once

#include <functional>
#include <string>
#include <type_traits>

#include "words/message.h"

namespace phalanx::view {

using base::Language;

using words::Phrase;

class Speech {
 public:
  explicit Speech(Language language) : language_(language) {}

  Language language() const { return language_; }
  template <typename... Args>
  std::string operator()(const Phrase<Args...>& phrase, const std::type_identity_t<Args>&... args) const {
    return words::tr<Args...>(language_, phrase, args...);
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
