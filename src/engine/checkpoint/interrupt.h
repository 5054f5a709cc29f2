// Asks a thread that waits or writes to give up.
#pragma once

#include <atomic>
#include <chrono>

#include "os/fd.h"

namespace phalanx::engine::checkpoint {

class Interrupt {
 public:
  Interrupt();
  void raise();  // from any thread; it stays raised
  bool raised() const { return raised_.load(std::memory_order_acquire); }
  // Returns when raised, when `fd` (if it is not negative) is readable, or after `patience`.
  void wait(int fd, std::chrono::milliseconds patience) const;

 private:
  std::atomic<bool> raised_{false};
  os::Fd event_;
};

}  // namespace phalanx::engine::checkpoint
