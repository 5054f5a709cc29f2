// Many words at once in much text. Each word is known by two groups of four of its bytes, one at an even and one at an odd offset, the
// rarest in ordinary text: one of them stands at an even place of the text, wherever the word stands. So only every second place is looked
// at; the hash of its four bytes is looked up in a table of bits that stays in the first-level cache, and only where that has it are words
// compared. Two gigabytes a second, where an automaton makes one dependent step per byte. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::diagnosis {

class LiteralSearch {
 public:
  static constexpr size_t kShortest = 4;
  struct Hit {
    size_t end;        // offset behind the last byte of the word
    uint32_t literal;  // position in the list given to the constructor
  };

  // Words of at least kShortest bytes (PHALANX_CHECK) without line ends. Equal words may be given more than once.
  explicit LiteralSearch(std::span<const std::string_view> literals);

  // Appends every occurrence, line by line; within a line in no order. A word does not go on from one call to the next.
  void find(std::string_view text, std::vector<Hit>& hits) const;

  // Where two parts of a text meet: from the end of one to the beginning of the next; what was put between them lies between.
  struct Seam {
    size_t begin, end;
  };
  // Appends what find() gives for the text but not for its parts: each occurrence that is not inside one part, once. seams: in order.
  void find_across(std::string_view text, std::span<const Seam> seams, std::vector<Hit>& hits) const;

 private:
  static constexpr size_t kBits = size_t{1} << 17;     // 16 KiB: half of a small first-level cache
  static constexpr size_t kBuckets = size_t{1} << 12;  // of groups_
  // A set of groups of four bytes, by the first bits of their hashes.
  class GroupSet {
   public:
    void add(uint32_t hash) { bits_[place(hash) / 64] |= uint64_t{1} << (place(hash) % 64); }
    bool may_have(uint32_t hash) const { return (bits_[place(hash) / 64] >> (place(hash) % 64)) & 1; }

   private:
    static size_t place(uint32_t hash) { return hash / ((uint64_t{1} << 32) / kBits); }
    std::array<uint64_t, kBits / 64> bits_{};
  };
  struct Group {
    uint32_t bytes;  // four of them
    uint32_t literal;
    int32_t offset;  // of the group in the word; -1: its first byte stands in front of the word
  };
  static size_t bucket_of(uint32_t hash) { return hash / ((uint64_t{1} << 32) / kBuckets); }
  size_t size_of(uint32_t literal) const { return begin_[literal + 1] - begin_[literal]; }
  bool may_stand_across(std::string_view text, Seam seam) const;
  void compare(std::string_view text, size_t at, uint32_t hash, std::vector<Hit>& hits) const;

  std::string words_;                           // all of them
  std::vector<uint32_t> begin_;                 // of each in words_; one more at the end
  size_t longest_ = 0;                          // bytes of a word
  GroupSet known_by_;                           // groups_
  GroupSet inside_;                             // every group of every word
  std::vector<Group> groups_;                   // by which words are known, by the first bits of their hashes
  std::array<uint32_t, kBuckets + 1> first_{};  // per bucket: of groups_
};

}  // namespace phalanx::diagnosis
