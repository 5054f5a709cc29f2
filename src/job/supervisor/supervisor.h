// The supervisor of one run: a pure function of its state and an event. No clock, no I/O: time comes with the event.
//
//   opening → checking → the attempt's phases (job/attempt/attempt.h)
// opening: connections are being made. checking: the survey of the hosts (job/survey/survey.h); left out without a preflight. The
// supervisor joins the two machines: it opens the hosts, hands each event to the machine it belongs to, decides what the survey's result
// means for the run, and notices hosts that fall silent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/attempt/attempt.h"
#include "job/survey/survey.h"

namespace phalanx::job {

// Deadlines. Durations on the launcher's clock.
inline constexpr os::milliseconds kPingEvery{1000};
inline constexpr os::milliseconds kHostPatience{5000};  // silence after which a host is lost
// A host that gets nothing may still be heard for seconds: its kernel sends again what was never acknowledged. But that is a little: a host
// whose answers wait behind its ranks' output, on a slow link, says more than this.
inline constexpr size_t kTalkative = 64 << 10;
inline constexpr os::milliseconds kOpeningSilence{5000};  // after the start: which hosts are not there yet

struct State : Attempt {
  Job job;
  int64_t wall_less_mono_ns = 0;  // of our clocks
  std::vector<HostState> hosts;
  Survey survey;
  os::Mono begun_at, ticked;
  bool opening_told = false;
  os::nanoseconds slept{0};  // the launcher did not run for so long, until woke_at
  os::Mono woke_at;
};

State initial_state(Job job, os::Mono now, int64_t wall_less_mono_ns = 0);
// The only way in which the state changes.
Actions step(State& state, const Event& event, os::Mono now);
// Whether all ranks it speaks of are the host's. Of another report nothing is kept, and the frame was malformed.
bool is_of_its_own(const State& state, const HostReported& event);

}  // namespace phalanx::job
