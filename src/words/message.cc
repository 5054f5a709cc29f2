#include "words/message.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "words/table.h"

namespace phalanx::words {

std::string_view chinese_of(std::string_view english) {
  const Table& all = table();
  const auto found = std::lower_bound(all.english.begin(), all.english.end(), english);
  if (found == all.english.end() || *found != english) return {};
  return all.chinese[static_cast<size_t>(found - all.english.begin())];
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

std::string format_in(Language language, Text text, fmt::format_args args) {
  const std::string_view format = text.in(language);
  // Chinese has no plural; a text without Chinese is shown in English.
  return format.data() == text.english.data() ? base::format_counted(format, args) : fmt::vformat(format, args);
}

Message format_both(Text text, fmt::format_args in_english, fmt::format_args in_chinese) {
  return {format_in(Language::kEnglish, text, in_english), format_in(Language::kChinese, text, in_chinese)};
}

}  // namespace phalanx::words
