// The probe of this machine, on behalf of the agent: machine::probe() in a child of its own (forked_look.h), because it forks and may hang.
#pragma once

#include <functional>

#include "agent/looks/forked_look.h"
#include "agent/ranks/environment.h"
#include "wire/check_messages.h"

namespace phalanx::agent {

class ProbeDuty {
 public:
  // done: called once per start(), from the loop.
  ProbeDuty(os::Loop& loop, std::function<void(wire::Probed)> done) : look_(loop, "phalanx-probe", "the probe"), done_(std::move(done)) {}

  // A probe still under way is killed and not answered.
  void start(const wire::Probe& request, const Environment& host);
  void kill() { look_.kill(); }  // everything it started; no answer follows
  // The process group of the last probe; 0: there was none.
  pid_t group() const { return look_.group(); }

 private:
  ForkedLook look_;
  std::function<void(wire::Probed)> done_;
};

}  // namespace phalanx::agent
