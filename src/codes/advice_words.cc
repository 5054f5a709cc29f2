#include <string>

#include "base/text.h"
#include "base/unicode.h"
#include "codes/advice.h"

namespace phalanx::codes {

Advice advice_on(std::string_view cell) {
  Advice advice;
  advice.words = base::split(cell, '|');
  if (!advice.words.back().starts_with('@')) return advice;
  advice.place = advice.words.back().substr(1);
  advice.words.pop_back();
  advice.on_the_way = advice.place.starts_with('@');
  if (advice.on_the_way) advice.place.remove_prefix(1);
  return advice;
}

std::string filled(std::string_view advice, std::span<const std::string_view> between) {
  constexpr size_t kMostBytes = 160;  // of one slot
  std::string out(advice);
  for (size_t i = between.size(); i > 0; --i) {
    const std::string slot = "{" + std::to_string(i) + "}";
    const std::string value = base::printable(base::trim(between[i - 1]), kMostBytes);
    for (size_t at = out.find(slot); at != out.npos; at = out.find(slot, at + value.size())) out.replace(at, slot.size(), value);
  }
  return out;
}

}  // namespace phalanx::codes
