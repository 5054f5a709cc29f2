// What single messages of other software mean, and what to do: codes/advice/<software>.tsv. A code says what kind of trouble it is; advice
// is for one message of that kind.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace phalanx::codes {

struct Advice {
  std::vector<std::string_view> words;  // the message contains all of them, in this order
  std::string_view english, chinese;
};

// Unpacked at the first call.
std::span<const Advice> all_advice();

// Whether a text contains all words, one behind the other.
inline bool has_words(std::string_view text, std::span<const std::string_view> words) {
  size_t at = 0;
  for (std::string_view word : words) {
    at = text.find(word, at);
    if (at == text.npos) return false;
    at += word.size();
  }
  return true;
}

}  // namespace phalanx::codes
