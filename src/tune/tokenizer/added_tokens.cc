#include "tune/tokenizer/added_tokens.h"

#include <algorithm>

#include "base/check.h"
#include "tune/tokenizer/characters.h"

namespace phalanx::tune {
namespace {

// The start of the last character before `at`, which is greater than 0.
size_t before(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

bool is_space_at(std::string_view text, size_t at) { return class_of(decode_at(text, at).code_point) == CharacterClass::kSpace; }
bool is_word_at(std::string_view text, size_t at) { return is_word_character(decode_at(text, at).code_point); }

bool stands_alone(std::string_view text, size_t start, size_t stop) {
  return (start == 0 || !is_word_at(text, before(text, start))) && (stop == text.size() || !is_word_at(text, stop));
}

}  // namespace

void AddedTokens::add(AddedToken token) {
  PHALANX_CHECK(!token.content.empty());
  uint32_t node = 0;
  for (char c : token.content) {
    const auto byte = static_cast<unsigned char>(c);
    auto& next = nodes_[node].next;
    auto place = std::lower_bound(next.begin(), next.end(), byte, [](const auto& edge, unsigned char b) { return edge.first < b; });
    if (place != next.end() && place->first == byte) {
      node = place->second;
      continue;
    }
    const auto fresh = static_cast<uint32_t>(nodes_.size());
    next.insert(place, {byte, fresh});
    nodes_.emplace_back();
    node = fresh;
  }
  nodes_[node].token = static_cast<int32_t>(tokens_.size());
  tokens_.push_back(std::move(token));
}

int32_t AddedTokens::longest_at(std::string_view text, size_t at) const {
  int32_t found = -1;
  const Node* node = nodes_.data();
  for (; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    auto place =
        std::lower_bound(node->next.begin(), node->next.end(), byte, [](const auto& edge, unsigned char b) { return edge.first < b; });
    if (place == node->next.end() || place->first != byte) break;
    node = &nodes_[place->second];
    if (node->token >= 0) found = node->token;
  }
  return found;
}

std::vector<Part> AddedTokens::split(std::string_view text) const {
  std::vector<Part> out;
  size_t done = 0;
  for (size_t at = 0; at < text.size() && !tokens_.empty();) {
    const int32_t index = longest_at(text, at);
    if (index < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(index)];
    size_t start = at, stop = at + token.content.size();
    at = stop;  // a refused match is passed over whole
    if (token.single_word && !stands_alone(text, start, stop)) continue;
    if (token.lstrip)
      while (start > done && is_space_at(text, before(text, start))) start = before(text, start);
    if (token.rstrip)
      while (stop < text.size() && is_space_at(text, stop)) stop += decode_at(text, stop).length;
    if (done < start) out.push_back({-1, text.substr(done, start - done)});
    out.push_back({token.id, text.substr(start, stop - start)});
    done = stop;
  }
  if (done < text.size()) out.push_back({-1, text.substr(done)});
  return out;
}

}  // namespace phalanx::tune
