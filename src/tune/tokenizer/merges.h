// Byte-pair encoding of one word: its bytes as ids, then the pair of lowest rank merged, leftmost first, until no pair is known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace phalanx::tune {

class Merges {
 public:
  // What a pair of ids becomes, and how early: lower ranks first.
  struct Merge {
    uint32_t rank = 0;
    int32_t id = -1;  // -1: no such pair
  };

  void reserve(size_t merges);
  void add(int32_t left, int32_t right, Merge merge);  // a pair given again replaces the first
  Merge find(int32_t left, int32_t right) const;

  // Merges the ids of one word in place.
  void apply(std::vector<int32_t>* ids) const;

 private:
  struct Slot {
    uint64_t pair = kFree;
    Merge merge;
  };
  static constexpr uint64_t kFree = ~uint64_t{0};
  size_t slot_of(uint64_t pair) const;
  void apply_to_long(std::vector<int32_t>* ids) const;

  std::vector<Slot> slots_ = std::vector<Slot>(16);  // open addressing, at most half full; the size is a power of two
  size_t used_ = 0;
};

}  // namespace phalanx::tune
