// Text to token ids and back. The first form knows one tokenizer: a token is a byte.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::engine::data {

struct ByteTokenizer {
  static constexpr int64_t kVocabulary = 256;

  static std::vector<int64_t> encode(std::string_view text) {
    std::vector<int64_t> ids;
    ids.reserve(text.size());
    for (char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  // Ids outside the vocabulary do not occur: they come from encode() or from a model of kVocabulary outputs.
  static std::string decode(std::span<const int64_t> ids) {
    std::string text;
    text.reserve(ids.size());
    for (int64_t id : ids) text.push_back(static_cast<char>(id));
    return text;
  }
};

}  // namespace phalanx::engine::data
