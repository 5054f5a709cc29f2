// What single messages of other software mean, and what to do: codes/advice/<software>.tsv. A code says what kind of trouble it is; advice
// is for one message of that kind.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::codes {

struct Advice {
  std::vector<std::string_view> words;  // the message contains all of them, in this order
  std::string_view place{};             // part of where the message was raised: "accelerate/utils/fsdp_utils.py"; empty: anywhere
  bool on_the_way = false;              // `place` may be that of any frame
  std::string_view english, chinese;    // {1}: what the message has between the first two words, {2}: between the next two
};

// The words and the place of a row's first cell: "words|more words|@place", or "…|@@place" for any frame. Views of it.
Advice advice_on(std::string_view cell);

// Unpacked at the first call.
std::span<const Advice> all_advice();

// What a text that contains all words, one behind the other, has between them; nothing: it does not.
inline std::optional<std::vector<std::string_view>> between_words(std::string_view text, std::span<const std::string_view> words) {
  std::vector<std::string_view> between;
  size_t from = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t at = text.find(words[i], from);
    if (at == text.npos) return std::nullopt;
    if (i > 0) between.push_back(text.substr(from, at - from));
    from = at + words[i].size();
  }
  return between;
}

// The advice with what the message has in its slots.
std::string filled(std::string_view advice, std::span<const std::string_view> between);

}  // namespace phalanx::codes
