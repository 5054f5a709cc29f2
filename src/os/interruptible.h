// While it lives, the signals by which a terminal ends a program end this one at once, also where a loop (os/loop.h) reads them as a rule.
// For work that may wait for a disk outside the loop: Ctrl-C could not be noticed there.
#pragma once

#include <signal.h>

namespace phalanx::os {

class Interruptible {
 public:
  Interruptible() {
    sigset_t ends;
    ::sigemptyset(&ends);
    for (int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaddset(&ends, s);
    ::sigprocmask(SIG_UNBLOCK, &ends, &before_);
  }
  ~Interruptible() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  sigset_t before_;
};

}  // namespace phalanx::os
