// The probe of this machine, on behalf of the agent: one child that runs host::probe() (which forks guarded children of its own) and
// pipes the facts back to the loop. The loop never waits for it.
//
// Child and grandchildren are one process group, so that all can be killed at once and told from what ranks left behind: a process
// that hangs in a dead file system cannot be ended and is nobody's leftover.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "agent/environment.h"
#include "os/loop.h"
#include "wire/check_messages.h"

namespace agent {

class ProbeDuty {
 public:
  // done: called once per start(), from the loop.
  ProbeDuty(os::Loop& loop, std::function<void(wire::Probed)> done) : loop_(loop), done_(std::move(done)) {}
  ~ProbeDuty();
  ProbeDuty(const ProbeDuty&) = delete;
  ProbeDuty& operator=(const ProbeDuty&) = delete;

  // A probe still under way is killed and not answered.
  void start(const wire::Probe& request, const Environment& host);
  void kill();  // everything it started; no answer follows
  // The process group of the last probe; 0: there was none.
  pid_t group() const { return group_; }

 private:
  base::Status fork_child(const wire::Probe& request, const Environment& host);
  void read_more();
  void answer(wire::Probed probed);
  void forget();

  os::Loop& loop_;
  std::function<void(wire::Probed)> done_;
  pid_t group_ = 0;
  os::Fd pipe_;
  os::WatchId watch_ = 0;
  os::TimerId timer_ = 0;
  std::string text_;
};

}  // namespace agent
