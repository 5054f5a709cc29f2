// The one loop of a process: descriptors, timers, signals and child exits, on one thread. Every callback runs from
// run() or poll(); none runs from another callback. Signals are blocked and arrive only inside the wait.
//
// Lifetime: a watch or timer ends when its handle is cancelled or the loop dies; a callback may cancel any watch or timer, its own
// included. Not thread safe.
#pragma once

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "os/clock.h"
#include "os/fd.h"

namespace phalanx::os {

using WatchId = uint64_t;  // 0 is never given
using TimerId = uint64_t;  // 0 is never given

class Loop {
 public:
  // events: EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR as reported by epoll (level-triggered).
  using FdCallback = std::function<void(uint32_t events)>;
  using TimerCallback = std::function<void()>;
  using SignalCallback = std::function<void(const signalfd_siginfo&)>;
  // status as from waitpid: WIFEXITED, WIFSIGNALED.
  using ChildCallback = std::function<void(pid_t pid, int status)>;

  static base::Result<std::unique_ptr<Loop>> create();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // fd stays the caller's; it must be cancelled before it is closed. A regular file cannot be watched (error).
  base::Result<WatchId> watch(int fd, uint32_t events, FdCallback callback);
  void rewatch(WatchId id, uint32_t events);
  void unwatch(WatchId id);

  TimerId after(nanoseconds delay, TimerCallback callback);
  TimerId every(nanoseconds period, TimerCallback callback);
  void cancel(TimerId id);

  // Blocks `signal_number` for the process and calls back inside the wait.
  base::Status on_signal(int signal_number, SignalCallback callback);
  // Every child that ends, adopted ones included, exactly once. Uses SIGCHLD.
  base::Status on_child(ChildCallback callback);

  void run();                    // until stop()
  void poll(milliseconds most);  // one wait of at most this long, and its callbacks
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }
  // Signals blocked by this loop must be unblocked in a forked child before exec; os::spawn does so.

 private:
  struct Watch {
    int fd;
    uint32_t events;
    FdCallback callback;
  };
  struct Timer {
    Mono due;
    nanoseconds period;
    TimerCallback callback;
  };
  Loop() = default;
  void reap();
  void run_timers();
  void read_signals();

  Fd epoll_;
  Fd signals_;
  sigset_t signal_set_{};
  bool stopped_ = false;
  uint64_t next_id_ = 1;
  std::unordered_map<WatchId, std::shared_ptr<Watch>> watches_;
  std::map<std::pair<int64_t, TimerId>, std::shared_ptr<Timer>> timers_;  // by (due, id)
  std::unordered_map<TimerId, int64_t> timer_due_;
  std::map<int, SignalCallback> signal_callbacks_;
  ChildCallback child_callback_;
};

}  // namespace phalanx::os
