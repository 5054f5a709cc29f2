// From the raw bytes of one stream of one rank to whole lines and the states of progress bars. Pure; one per rank and
// stream, in the agent.
//
// What comes out, in the order of the stream:
//   lines     any number of whole lines in one chunk, each ending in "\n", their bytes untouched. A chunk without "\r"
//             costs one memchr and one memrchr however many lines it holds.
//   progress  the state of a progress bar that was or will be overwritten; only the latest of those read together.
// Nothing is lost or reordered but superseded bar states and the blanks and cursor moves that draw them.
//
// "\r\n" ends a line like "\n". A bare "\r" ends a segment that the next one overwrites: a bar state, or else a line of
// its own. A bar state that "\n" ends is a line, and the first of its chunk. Bars below bars (tqdm with position, drawn
// as "\n\r…ESC[A") stay bars: the "\n" that only moves the cursor is not the end of the upper bar.
//
// A line longer than kMaxLineBytes is given in pieces, each ended by us and never inside a UTF-8 sequence; so is what has no "\n"
// at the end of the stream, and a prompt ("Continue? ") that waits. Such a chunk holds one line and has `cut` set. Any other
// unfinished line waits for its end: a program that writes in blocks may pause in the middle of a line for hours.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "logs/progress_bar.h"
#include "wire/messages.h"

namespace phalanx::logs {

inline constexpr size_t kMaxLineBytes = 64 << 10;
inline constexpr size_t kMaxPromptBytes = 256;
inline constexpr int kPromptPatience = 8;  // calls of flush_stale() with nothing new before a prompt is given out

struct Chunk {
  wire::OutputKind kind = wire::OutputKind::kLines;
  bool cut = false;        // the "\n" at its end is ours
  std::string_view bytes;  // valid during the call; at most 2 * kMaxLineBytes
};

class LineSplitter {
 public:
  using Sink = std::function<void(const Chunk&)>;

  void feed(std::string_view bytes, const Sink& sink);
  // To be called at a steady period: gives out a bar state to which nothing was added since the last call, and a prompt to which
  // nothing was added for kPromptPatience calls.
  void flush_stale(const Sink& sink);
  // The end of the stream: gives out what is left.
  void finish(const Sink& sink);
  // Whether flush_stale() could have something to do, now or one period later.
  bool has_tail() const { return !tail_.empty() || below_ > 0 || pending_cr_; }

 private:
  void feed_plain(std::string_view bytes);
  void feed_segments(std::string_view bytes);
  bool plain() const { return !pending_cr_ && !after_cr_ && below_ == 0; }
  void append_tail(std::string_view bytes);
  void end_line();
  void end_segment();
  void put_line(std::string_view line, bool cut);
  void put_bar_line(std::string_view line, bool cut);
  void put_state(std::string_view state, Bar bar);
  void settle_upper();
  void give_lines();
  void give_state();
  void cut_tail();
  bool tail_is_prompt() const;

  const Sink* sink_ = nullptr;  // during a call
  std::string tail_;            // the segment that has not ended yet
  std::string lines_;           // whole lines put together by the slow path, given out before anything else
  std::string state_;           // the latest bar state of this call
  std::optional<Bar> state_bar_;
  std::string last_overwritten_;  // the last line of this row that a "\r" ended: given once, however often it is drawn
  std::string upper_;             // a bar that "\n" ended while it was not complete: a line, or the bar above the next one
  size_t below_ = 0;              // rows the cursor is below upper_
  bool pending_cr_ = false;       // "\r" read, the next byte not
  bool after_cr_ = false;         // tail_ began after a "\r"
  bool cut_open_ = false;         // a piece was given out and ended by us: a "\n" directly after it is already there
  bool tail_given_ = false;       // tail_ was given as a state by flush_stale
  uint64_t fed_ = 0;              // bytes, ever
  uint64_t fed_at_last_flush_ = 0;
  int quiet_flushes_ = 0;  // calls of flush_stale() in a row with nothing new
};

}  // namespace phalanx::logs
