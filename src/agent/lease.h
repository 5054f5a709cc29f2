// How long the ranks of this host may live without their launcher. Pure: the time comes with each call.
//
// Every ping says when it was sent, on the launcher's clock, and the lease counts from that moment. What counts is not when the ping was
// read: an agent that was stopped for a minute finds pings in its pipe that were sent before the launcher gave the host up, and they must
// not renew anything. The two clocks are compared through the pings that arrived while the agent ran without a break: the shortest
// way of the last few is the difference of the clocks plus the fastest trip of a ping.
#pragma once

#include <deque>

#include "os/clock.h"

namespace phalanx::agent {

class Lease {
 public:
  // A gap between two calls of ran() that is longer than this is a time in which the agent did not run.
  static constexpr os::milliseconds kBreak{2000};
  static constexpr size_t kTrips = 16;

  // From here on the lease is counted; before, it never ends. shift: from here on `now` comes from a clock that shows so much more.
  void begin(os::milliseconds length, os::Mono now, os::nanoseconds shift = {});
  // A ping was read.
  void heard(int64_t sent_ns, os::Mono now);
  // The loop ran, and everything that had arrived was read.
  void ran(os::Mono now) { ran_ = now; }

  bool begun() const { return length_.count() > 0; }
  bool over(os::Mono now) const { return begun() && now > end(); }
  os::Mono end() const { return last_ + length_; }
  os::milliseconds length() const { return length_; }

 private:
  os::milliseconds length_{0};
  os::Mono last_;              // when the newest ping was sent, on this host's clock
  os::Mono ran_;               // no time: it has not run yet
  std::deque<int64_t> trips_;  // read less sent, each on its own clock
};

}  // namespace phalanx::agent
