#include "diagnosis/logs/literal_search.h"

#include <cstring>

#include "base/check.h"

namespace phalanx::diagnosis {
namespace {

constexpr uint32_t kHashes = 1 << 16;

uint32_t hash_at(const char* four_bytes) {
  uint32_t value;
  std::memcpy(&value, four_bytes, sizeof(value));
  return (value * 0x9e3779b1u) >> 16;
}

// How common a byte is in logs, roughly: small letters and blanks most, then digits, then capitals; signs are rare.
int commonness(char c) {
  if (std::string_view("etaoinsr ").find(c) != std::string_view::npos) return 8;
  if (c >= 'a' && c <= 'z') return 5;
  if (c >= '0' && c <= '9') return 4;
  if (c == 'N' || c == 'C' || c == 'L' || c == 'I' || c == 'F' || c == 'O' || c == '.' || c == ':' || c == '_') return 4;
  return 1;
}

uint32_t rarest_four(std::string_view word) {
  uint32_t best = 0;
  int least = 1000;
  for (size_t i = 0; i + LiteralSearch::kShortest <= word.size(); ++i) {
    int sum = 0;
    for (char c : word.substr(i, LiteralSearch::kShortest)) sum += commonness(c);
    if (sum >= least) continue;
    least = sum;
    best = static_cast<uint32_t>(i);
  }
  return best;
}

}  // namespace

LiteralSearch::LiteralSearch(std::span<const std::string_view> literals) : first_(kHashes + 1) {
  std::vector<std::pair<uint32_t, Word>> found;
  for (std::string_view literal : literals) {
    PHALANX_CHECK(literal.size() >= kShortest);
    uint32_t offset = rarest_four(literal);
    uint32_t hash = hash_at(literal.data() + offset);
    bits_[hash / 64] |= uint64_t{1} << (hash % 64);
    ++first_[hash + 1];
    found.emplace_back(hash, Word{static_cast<uint32_t>(literals_.size()), offset});
    literals_.emplace_back(literal);
  }
  for (uint32_t i = 0; i < kHashes; ++i) first_[i + 1] += first_[i];
  std::vector<uint32_t> next(first_.begin(), first_.end());
  words_.resize(found.size());
  for (const auto& [hash, word] : found) words_[next[hash]++] = word;
}

void LiteralSearch::compare(std::string_view text, size_t at, uint32_t hash, std::vector<Hit>& hits) const {
  for (uint32_t i = first_[hash]; i < first_[hash + 1]; ++i) {
    const Word& word = words_[i];
    const std::string& literal = literals_[word.literal];
    if (at < word.offset || text.size() - (at - word.offset) < literal.size()) continue;
    if (std::memcmp(text.data() + (at - word.offset), literal.data(), literal.size()) == 0)
      hits.push_back({at - word.offset + literal.size(), word.literal});
  }
}

void LiteralSearch::find(std::string_view text, std::vector<Hit>& hits) const {
  for (size_t i = 0; i + kShortest <= text.size(); ++i) {
    uint32_t hash = hash_at(text.data() + i);
    if ((bits_[hash / 64] >> (hash % 64)) & 1) compare(text, i, hash, hits);
  }
}

}  // namespace phalanx::diagnosis
