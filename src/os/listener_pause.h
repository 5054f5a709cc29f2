// What a listener does when accept() fails because there are no descriptors left. The connection stays in the backlog and the listener
// stays readable, so a level-triggered loop would call back at once, again and again. It looks away for a moment instead: a descriptor may
// be free by then.
#pragma once

#include "os/loop.h"

namespace phalanx::os {

class ListenerPause {
 public:
  static constexpr milliseconds kPause{100};

  // The loop must outlive it.
  explicit ListenerPause(Loop& loop) : loop_(loop) {}
  ~ListenerPause() { loop_.cancel(timer_); }
  ListenerPause(const ListenerPause&) = delete;
  ListenerPause& operator=(const ListenerPause&) = delete;

  // The listener is not watched for kPause, then for EPOLLIN again. It may be unwatched meanwhile.
  void begin(WatchId listener) {
    loop_.rewatch(listener, 0);
    loop_.cancel(timer_);
    timer_ = loop_.after(kPause, [this, listener] {
      timer_ = 0;
      loop_.rewatch(listener, EPOLLIN);
    });
  }

 private:
  Loop& loop_;
  TimerId timer_ = 0;
};

}  // namespace phalanx::os
