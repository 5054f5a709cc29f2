// Text that people read. The source holds the English; the Chinese is data: words/zh-CN/*.yaml, compiled into a sorted table of
// constants (tools/compile_words), so that nothing is read or allocated at the start.
//
//   tr("{} is DOWN ({})", port, state)              a Message: both languages, for what is stored, or shown in a language not yet known
//   tr(language, "killed by {}", signal)            a std::string in one language
//   constexpr Text kHead{"STATE"};                  a constant, for tables; kHead.in(language)
//   constexpr Phrase<int, std::string_view> kFailed{"rank {} ({}) failed"};   a constant with values; tr(language, kFailed, 5, "gpu02")
//
// The compiler checks that the English fits the arguments and uses all of them. An argument that is a Text or a Message appears in the
// language of the whole. The Chinese may take arguments in another order ({1} … {0}) or leave out the "s" of an English plural;
// compile_words checks that it names no others. Without Chinese the English appears; the style test (tidy) reports that, so literals
// stand directly in tr(…), Text{…} or Phrase<…> k{…}, where it finds them. Codes, keys and JSON stay English and do not come here.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <type_traits>

#include "base/language.h"

// Clang 14, which builds the sanitized tests, crashes on immediate constructors, and takes an immediate call within another for one at run
// time. GCC compiles all of this too, and checks it.
#ifdef __clang__
#define PHALANX_CONSTEVAL constexpr
#else
#define PHALANX_CONSTEVAL consteval
#endif

namespace phalanx::words {

using base::Language;

// The Chinese of an English text, exactly as the source holds it; "" if the catalogue has none.
std::string_view chinese_of(std::string_view english);

// What follows "##" tells a text from others that read the same in English, and is not shown: Text{"error##count"}.
struct Text {
  std::string_view english;

  constexpr Text() = default;
  template <size_t N>
  PHALANX_CONSTEVAL explicit Text(const char (&text)[N])
      : english(std::string_view(text, N - 1).substr(0, std::string_view(text).find("##"))), key_size_(N - 1) {}
  constexpr bool empty() const { return english.empty(); }
  std::string_view in(Language language) const;

 private:
  size_t key_size_ = 0;
};

// Text made at run time, in both languages.
struct Message {
  std::string english;
  std::string chinese;

  const std::string& in(Language language) const { return language == Language::kChinese && !chinese.empty() ? chinese : english; }
  bool empty() const { return english.empty(); }
  Message& operator+=(const Message& more);
  // Appends an item of a list, after the separator unless it is the first.
  void add(const Message& separator, const Message& item);
};

// How many arguments a format takes: the largest index + 1, where every one below is used; -1 if one is left out.
constexpr int arguments_of(std::string_view format) {
  int next = 0, most = -1;
  unsigned long long used = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '{') continue;
    if (i + 1 < format.size() && format[i + 1] == '{') {
      ++i;
      continue;
    }
    int index = 0;
    bool named = false;
    for (++i; i < format.size() && format[i] >= '0' && format[i] <= '9'; ++i, named = true) index = index * 10 + (format[i] - '0');
    if (!named) index = next++;
    used |= 1ULL << index;
    most = index > most ? index : most;
  }
  return used == (1ULL << (most + 1)) - 1 ? most + 1 : -1;
}

// An argument, after all others, that the English does not need: " and {} more", of which the Chinese gives the total instead.
template <typename T>
struct ChineseOnly {
  const T& value;
};
template <typename T>
ChineseOnly<T> chinese_only(const T& value) {
  return {value};
}

template <typename T>
inline constexpr bool kChineseOnly = false;
template <typename T>
inline constexpr bool kChineseOnly<ChineseOnly<T>> = true;
template <typename T>
inline constexpr bool kSpoken = std::is_same_v<T, Message> || std::is_same_v<T, Text>;
template <typename T>
using Shown = std::conditional_t<kSpoken<T>, std::string_view, std::conditional_t<kChineseOnly<T>, int, T>>;

void a_text_uses_all_its_arguments();  // never defined: its name is in the error of a text that does not

template <typename... Args>
class Phrase {
 public:
  template <size_t N>
  PHALANX_CONSTEVAL Phrase(const char (&english)[N]) : text_(english) {  // implicit: the literal of a call of tr
#ifndef __clang__
    [[maybe_unused]] fmt::format_string<Shown<Args>...> fits(english);
    if (arguments_of(text_.english) != static_cast<int>(sizeof...(Args)) - (0 + ... + kChineseOnly<Args>)) a_text_uses_all_its_arguments();
#endif
  }
  constexpr Text text() const { return text_; }

 private:
  Text text_;
};

// What tr does when the types are gone.
std::string format_in(Language language, Text text, fmt::format_args args);
Message format_both(Text text, fmt::format_args in_english, fmt::format_args in_chinese);

template <typename T>
decltype(auto) shown_in(Language language, const T& value) {
  if constexpr (kSpoken<T>) return std::string_view(value.in(language));
  else if constexpr (kChineseOnly<T>) return (value.value);
  else return (value);
}

template <typename... Args>
std::string tr(Language language, Phrase<std::type_identity_t<Args>...> english, const Args&... args) {
  return format_in(language, english.text(), fmt::make_format_args(shown_in(language, args)...));
}

template <typename... Args>
Message tr(Phrase<std::type_identity_t<Args>...> english, const Args&... args) {
  if constexpr ((kSpoken<Args> || ...)) {
    return format_both(english.text(), fmt::make_format_args(shown_in(Language::kEnglish, args)...),
                       fmt::make_format_args(shown_in(Language::kChinese, args)...));
  } else {
    const auto store = fmt::make_format_args(shown_in(Language::kEnglish, args)...);
    return format_both(english.text(), store, store);
  }
}

}  // namespace phalanx::words
