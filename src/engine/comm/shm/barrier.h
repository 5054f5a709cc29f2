// Where the ranks of one host stand, in memory they share, and how they wait for each other there.
//
// All ranks go through the same steps. In a step a rank writes its note (what it calls), and what it puts in into its tray, then arrives;
// when all have arrived it reads the others' notes and trays. Notes and trays are double: a rank that writes those of step s + 2 has seen
// all others arrive at s + 1, and they did that after reading those of step s. So one meeting per step is enough.
//
// Waiting: a few microseconds of looking, then sleep on a futex. A rank holds a lock on a byte of the segment's file while it lives; the
// kernel drops it with the process, whatever ended it. Those who wait look at the locks of those who are missing, and, because a child
// that a rank forked keeps the lock, at their processes.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/call_note.h"
#include "engine/comm/shm/segment.h"

namespace phalanx::engine::comm {

class ShmBarrier {
 public:
  static constexpr size_t kTrayBytes = 256 << 10;
  static size_t bytes_for(int count);
  // `file` is the segment's descriptor of this rank's own (open_again). Takes the lock of `index`. ranks: what they are called in errors.
  ShmBarrier(std::shared_ptr<Mapping> memory, os::Fd file, int index, std::vector<int> ranks);
  ~ShmBarrier();

  int index() const { return index_; }
  int count() const { return static_cast<int>(ranks_.size()); }
  base::Status lock();

  // This rank's note and tray of the step that begins; the others' of the step that ended.
  void write(const CallNote& note);
  char* tray();
  CallNote read(int index) const;
  const char* tray_of(int index) const;

  // Ends the step: returns when all have arrived. Throws when one is gone or the time is over; the text names those who are missing and
  // where they are.
  void meet(std::chrono::milliseconds limit);

 private:
  struct State;
  struct Head;
  State& state(int index) const;
  bool arrived(int index) const;
  void await(int index, std::chrono::steady_clock::time_point end, std::chrono::milliseconds limit);
  bool alive(int index) const;
  [[noreturn]] void fail_gone(int index) const;
  [[noreturn]] void fail_late(std::chrono::milliseconds limit) const;

  std::shared_ptr<Mapping> memory_;
  os::Fd file_;
  int index_;
  std::vector<int> ranks_;
  uint32_t step_ = 0;
  bool crowded_;  // more ranks than cores: looking would keep others from working
};

}  // namespace phalanx::engine::comm
