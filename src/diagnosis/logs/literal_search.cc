#include "diagnosis/logs/literal_search.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/check.h"

namespace phalanx::diagnosis {
namespace {

constexpr size_t kGroup = 4;   // bytes by which a word is known
constexpr size_t kStride = 2;  // places of the text of which one is looked at

uint32_t group_at(const char* bytes) {
  uint32_t group;
  std::memcpy(&group, bytes, sizeof(group));
  return group;
}

uint32_t hash_of(uint32_t group) { return group * 0x9e3779b1u; }

// How common a byte is in logs, roughly: small letters and blanks most, then digits, then capitals; signs are rare.
int commonness(char c) {
  if (std::string_view("etaoinsr ").find(c) != std::string_view::npos) return 8;
  if (c >= 'a' && c <= 'z') return 5;
  if (c >= '0' && c <= '9') return 4;
  if (c == 'N' || c == 'C' || c == 'L' || c == 'I' || c == 'F' || c == 'O' || c == '.' || c == ':' || c == '_') return 4;
  return 1;
}

// Offset of the rarest group among those at `first`, two bytes later, and so on; nothing: the word is too short.
std::optional<size_t> rarest_group(std::string_view word, size_t first) {
  std::optional<size_t> best;
  int least = 0;
  for (size_t i = first; i + kGroup <= word.size(); i += kStride) {
    int sum = 0;
    for (char c : word.substr(i, kGroup)) sum += commonness(c);
    if (best && sum >= least) continue;
    least = sum;
    best = i;
  }
  return best;
}

}  // namespace

LiteralSearch::LiteralSearch(std::span<const std::string_view> literals) {
  std::vector<Group> groups;
  for (std::string_view literal : literals) {
    PHALANX_CHECK(literal.size() >= kShortest);
    const auto number = static_cast<uint32_t>(begin_.size());
    begin_.push_back(static_cast<uint32_t>(words_.size()));
    words_ += literal;
    longest_ = std::max(longest_, literal.size());
    for (size_t i = 0; i + kGroup <= literal.size(); ++i) inside_.add(hash_of(group_at(literal.data() + i)));
    for (size_t first = 0; first < kStride; ++first) {
      if (std::optional<size_t> offset = rarest_group(literal, first)) {
        groups.push_back({group_at(literal.data() + *offset), number, static_cast<int32_t>(*offset)});
        continue;
      }
      // A word of four bytes at an odd place: the group at the even place before it begins with any byte.
      std::string bytes = " " + std::string(literal.substr(0, kGroup - 1));
      for (int c = 0; c < 256; ++c) {
        bytes[0] = static_cast<char>(c);
        groups.push_back({group_at(bytes.data()), number, -1});
      }
    }
  }
  begin_.push_back(static_cast<uint32_t>(words_.size()));
  for (const Group& group : groups) {
    const uint32_t hash = hash_of(group.bytes);
    known_by_.add(hash);
    ++first_[bucket_of(hash) + 1];
  }
  for (size_t i = 0; i < kBuckets; ++i) first_[i + 1] += first_[i];
  std::vector<uint32_t> next(first_.begin(), first_.end());
  groups_.resize(groups.size());
  for (const Group& group : groups) groups_[next[bucket_of(hash_of(group.bytes))]++] = group;
}

void LiteralSearch::compare(std::string_view text, size_t at, uint32_t hash, std::vector<Hit>& hits) const {
  const uint32_t bytes = group_at(text.data() + at);
  const size_t bucket = bucket_of(hash);
  for (uint32_t i = first_[bucket]; i < first_[bucket + 1]; ++i) {
    const Group& group = groups_[i];
    if (group.bytes != bytes || static_cast<int64_t>(at) < group.offset) continue;
    const size_t begin = at - static_cast<size_t>(int64_t{group.offset});
    const size_t size = size_of(group.literal);
    if (text.size() - begin < size) continue;
    if (std::memcmp(text.data() + begin, words_.data() + begin_[group.literal], size) == 0) hits.push_back({begin + size, group.literal});
  }
}

void LiteralSearch::find(std::string_view text, std::vector<Hit>& hits) const {
  for (size_t i = 0; i + kGroup <= text.size(); i += kStride) {
    const uint32_t hash = hash_of(group_at(text.data() + i));
    if (known_by_.may_have(hash)) compare(text, i, hash, hits);
  }
}

// A word across a seam has four bytes in a row of which one stands at the seam or both beside it.
bool LiteralSearch::may_stand_across(std::string_view text, Seam seam) const {
  for (size_t at = seam.begin - std::min(seam.begin, kGroup - 1); at < seam.end && at + kGroup <= text.size(); ++at)
    if (inside_.may_have(hash_of(group_at(text.data() + at)))) return true;
  return false;
}

void LiteralSearch::find_across(std::string_view text, std::span<const Seam> seams, std::vector<Hit>& hits) const {
  if (longest_ == 0) return;
  const size_t reach = longest_ - 1;
  size_t before = 0;  // where the seam before ends: what begins in front of that has been given
  for (const Seam& seam : seams) {
    if (!may_stand_across(text, seam)) continue;
    const size_t from = seam.begin - std::min(seam.begin, reach);
    const size_t first = hits.size();
    find(text.substr(from, seam.end - from + reach), hits);
    auto elsewhere = [&](Hit& hit) {
      hit.end += from;
      const size_t begin = hit.end - size_of(hit.literal);
      return begin < before || begin >= seam.end || hit.end <= seam.begin;
    };
    hits.erase(std::remove_if(hits.begin() + static_cast<ptrdiff_t>(first), hits.end(), elsewhere), hits.end());
    before = seam.end;
  }
}

}  // namespace phalanx::diagnosis
