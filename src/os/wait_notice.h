// A text for the user, on standard error, when what the caller does takes longer than it should: a file system that hangs holds the caller
// in a system call in which no signal handler and no timer of its own can run, so a process beside it keeps the time (os/apart.h).
#pragma once

#include <chrono>
#include <string>

#include "os/fd.h"

namespace phalanx::os {

class WaitNotice {
 public:
  // Best effort: without another process there is no notice. The caller must have one thread only; its loop collects the child.
  WaitNotice(const std::string& text, std::chrono::milliseconds after);
  // Ends it: it was not said, or it was.
  ~WaitNotice() = default;
  WaitNotice(const WaitNotice&) = delete;
  WaitNotice& operator=(const WaitNotice&) = delete;

 private:
  Fd caller_;  // closed when the caller has gone on, or has ended
};

}  // namespace phalanx::os
