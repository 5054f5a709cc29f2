// Folding: the same line from many ranks is shown once. Pure; the clock is given.
//
// The first occurrence of a line is passed on at once. The same bytes from other ranks on the same kind of stream within
// kWindow of it are held and given once, with the ranks they came from, when the window ends. Where every rank says a
// line twice, the second time of one rank stands for the second time of the others. No line is lost or held longer than
// the window (given that tick() is called by due()); lines of one rank that are passed on keep their order.
//
// Bounds: kMaxEntries lines of together kArenaBytes are remembered, the oldest forgotten first (what it holds is given
// early); lines longer than kMaxFoldedBytes are passed on. With one rank nothing is looked at.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "os/clock.h"
#include "wire/messages.h"

namespace phalanx::logs {

class Folder {
 public:
  static constexpr std::chrono::milliseconds kWindow{200};
  static constexpr size_t kMaxEntries = 8192;
  static constexpr size_t kArenaBytes = 1 << 20;
  static constexpr size_t kMaxFoldedBytes = 1024;
  static constexpr size_t kMaxHeld = 1 << 16;  // (line, rank) pairs

  class Sink {
   public:
    virtual ~Sink() = default;
    // Whole lines of one rank. Valid during the call.
    virtual void pass(int rank, wire::Stream stream, std::string_view lines) = 0;
    // `line` (with its "\n") came `times` more times, from these ranks, ascending.
    virtual void folded(wire::Stream stream, std::string_view line, std::span<const int> ranks, size_t times) = 0;
  };

  explicit Folder(int ranks);

  void lines(int rank, wire::Stream stream, std::string_view lines, os::Mono now, Sink& sink);
  // Gives what has been held for the window.
  void tick(os::Mono now, Sink& sink);
  // When tick() has something to give; nothing while nothing is held.
  std::optional<os::Mono> due() const;
  // Gives everything held.
  void flush(Sink& sink);

 private:
  struct Seen {
    int rank;
    uint32_t times;
    uint32_t held;
  };
  struct Entry {
    uint64_t hash = 0;
    uint64_t position = 0;  // of the text, counted over the arena's whole life
    os::Mono first_seen;
    uint32_t length = 0;
    uint32_t passed = 0;  // times passed on
    int first_rank = 0;
    int32_t next = -1;  // slot of the next entry of the same bucket
    wire::Stream stream{};
    std::vector<Seen> ranks;  // empty: only first_rank said it, `passed` times
  };
  Entry& slot(uint64_t sequence) { return entries_[sequence % kMaxEntries]; }
  int32_t& bucket(uint64_t hash) { return buckets_[hash % buckets_.size()]; }
  std::string_view text_of(const Entry& entry) const { return {arena_.data() + entry.position % kArenaBytes, entry.length}; }
  Entry* find(uint64_t hash, wire::Stream stream, std::string_view line);
  void remember(uint64_t hash, int rank, wire::Stream stream, std::string_view line, os::Mono now, Sink& sink);
  bool hold(Entry& entry, int rank);
  void forget_oldest(Sink& sink);

  bool single_;
  std::vector<Entry> entries_;
  std::vector<int32_t> buckets_;
  std::vector<char> arena_;
  std::vector<int> given_ranks_;    // reused
  uint64_t oldest_ = 0, next_ = 0;  // entries oldest_ … next_ - 1 are alive
  uint64_t arena_end_ = 0;
  size_t held_ = 0;
};

}  // namespace phalanx::logs
