// Frames on their way to the launcher. Two queues: control frames (exits, pongs) overtake output, so that a flood of
// output delays no verdict; within a queue order is kept. Output is bounded: when full() the agent stops reading its
// ranks' pipes, and the ranks block on their own writes. That is the back-pressure, end to end.
#pragma once

#include <functional>
#include <string>

#include "os/fd.h"
#include "os/loop.h"
#include "wire/messages.h"

namespace phalanx::agent {

class Outbox {
 public:
  static constexpr size_t kOutputBound = 1 << 20;  // bytes

  // fd must be non-blocking and stays the caller's. on_room: output has fallen below half the bound after full().
  // on_broken: the launcher cannot be written to any more; called once.
  Outbox(os::Loop& loop, int fd, std::function<void()> on_room, std::function<void()> on_broken);
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  template <typename Message>
  void control(const Message& message) {
    if (!encode(control_, message).ok()) (void)encode(control_, wire::Trouble{"an answer was too large to send"});
    pump();
  }
  template <typename Message>
  void output(const Message& message) {
    (void)encode(output_, message);  // read in pieces of far less than a frame
    pump();
  }
  void magic() { control_.append(wire::kStreamMagic); }

  bool full() const { return output_.size() >= kOutputBound; }
  bool empty() const { return active_.empty() && control_.empty() && output_.empty(); }

 private:
  void pump();
  void update_watch();

  os::Loop& loop_;
  int fd_;
  std::function<void()> on_room_;
  std::function<void()> on_broken_;
  os::WatchId watch_ = 0;
  bool was_full_ = false;
  bool broken_ = false;
  std::string active_;  // being written; whole frames only
  size_t written_ = 0;  // of active_
  std::string control_;
  std::string output_;
};

}  // namespace phalanx::agent
