#include "words/message.h"

#include <fmt/format.h>

#include <algorithm>

#include "words/table.h"

namespace phalanx::words {

std::string_view chinese_of(std::string_view english) {
  std::span<const Entry> all = table();
  auto found = std::lower_bound(all.begin(), all.end(), english, [](const Entry& e, std::string_view text) { return e.english < text; });
  return found != all.end() && found->english == english ? found->chinese : std::string_view();
}

std::string_view Text::in(Language language) const {
  if (language == Language::kEnglish) return english;
  std::string_view chinese = chinese_of({english.data(), key_size_});
  return chinese.empty() ? english : chinese;
}

Message& Message::operator+=(const Message& more) {
  chinese = in(Language::kChinese) + more.in(Language::kChinese);
  english += more.english;
  return *this;
}

void Message::add(const Message& separator, const Message& item) {
  if (!empty()) *this += separator;
  *this += item;
}

std::string format_in(Language language, Text text, fmt::format_args args) { return fmt::vformat(text.in(language), args); }

Message format_both(Text text, fmt::format_args in_english, fmt::format_args in_chinese) {
  return {fmt::vformat(text.english, in_english), fmt::vformat(text.in(Language::kChinese), in_chinese)};
}

}  // namespace phalanx::words
