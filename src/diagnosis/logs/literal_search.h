// Many words at once in much text. Each word is known by four of its bytes, the rarest in ordinary text; their hash at every place of the
// text is looked up in a table of bits that stays in the first-level cache, and only there is the word compared. Over a gigabyte a second,
// where an automaton makes one dependent step per byte. Pure.
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

 private:
  struct Word {
    uint32_t literal;
    uint32_t offset;  // of the four bytes in the word
  };
  void compare(std::string_view text, size_t at, uint32_t hash, std::vector<Hit>& hits) const;

  std::vector<std::string> literals_;
  std::array<uint64_t, 1024> bits_{};  // one per hash
  std::vector<uint32_t> first_;        // per hash: of words_; one more at the end
  std::vector<Word> words_;
};

}  // namespace phalanx::diagnosis
