// The supervisor of one run: a pure function of its state and an event. No clock, no I/O: time comes with the event.
//
//   opening → checking → preparing → reaching → running → stopping → finishing → ended
// opening: connections are being made. checking: every host is probed, they connect to each other, the doctor looks at it all,
// GPUs and addresses are chosen (job/survey/survey.h); left out without a preflight. preparing: every host checks directory and program, rank 0's
// host binds the store. reaching: every other host really connects to it. After that it is fixed for good who runs where; no rank runs
// before. running: until the first failure, a lost host, the operator, or all ranks done. stopping: SIGTERM, grace, SIGKILL. finishing:
// every host ends what is left and says so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/events.h"
#include "job/job.h"
#include "job/plan.h"
#include "job/survey/survey.h"
#include "wire/rank_event.h"

namespace phalanx::job {

enum class Phase { kOpening, kChecking, kPreparing, kReaching, kRunning, kStopping, kFinishing, kEnded };

// Deadlines. Durations on the launcher's clock.
inline constexpr os::milliseconds kPingEvery{1000};
inline constexpr os::milliseconds kHostPatience{5000};  // silence after which a host is lost
// A host that gets nothing may still be heard for seconds: its kernel sends again what was never acknowledged. But that is a little: a host
// whose answers wait behind its ranks' output, on a slow link, says more than this.
inline constexpr size_t kTalkative = 64 << 10;
inline constexpr os::milliseconds kSettle{1500};  // after the first refusal: wait for others, to name all at once
inline constexpr os::milliseconds kReachTimeout{3000};
inline constexpr os::milliseconds kOpeningSilence{5000};  // after the start: which hosts are not there yet
inline constexpr os::milliseconds kStoreSilence{10'000};  // after start: who has not met the store
inline constexpr os::milliseconds kKillPatience{3000};    // after SIGKILL
inline constexpr os::milliseconds kFinishPatience{5000};

struct HostState {
  bool open = false, ended = false, prepared = false, reached = false, finished = false;
  os::Mono ended_at;      // nothing was sent to it after this
  bool forsaken = false;  // its agent has ended its ranks because we had not run for longer than its lease
  bool silent = false;    // it did not answer the checks in time: nobody waits for its end
  wire::Hello hello;
  std::string program;    // what Prepared found
  std::string interface;  // what Reached found
  os::Mono heard, pinged;
  os::Mono answered;       // when its last answer to a ping came
  size_t heard_since = 0;  // bytes, after that answer
  uint64_t nonce = 0;
  int64_t clock_offset_ns = 0;                // host's monotonic clock less ours
  std::optional<int64_t> best_round_trip_ns;  // of the sample the offset comes from
  std::optional<base::Error> refusal;
  uint32_t left = 0;  // processes it could not end, as Finished says
};

struct RankState {
  bool started = false, connected = false, exited = false, lost = false;
  uint32_t pid = 0;
  int status = 0;
  os::Mono at;  // end, on our clock
  uint8_t stopped_by_us = 0;
  std::string error_file;
  std::string last_words;  // this and the signs as Exited brings them
  std::vector<wire::ExitSign> signs;
  std::optional<int64_t> step;  // the last it has told
  bool failed() const { return exited && !lost && status != 0 && stopped_by_us == 0; }
  bool over() const { return exited || lost; }
};

struct State {
  Job job;
  int64_t wall_less_mono_ns = 0;  // of our clocks
  Checks checks;
  Phase phase = Phase::kOpening;
  std::vector<HostState> hosts;
  std::vector<RankState> ranks;
  std::optional<Plan> plan;
  std::vector<std::string> addresses;  // left to try, best first
  size_t address = 0;                  // the one being tried
  std::optional<Meeting> meeting;
  std::optional<base::Error> first_reach_error;
  std::optional<os::Mono> settle_at, stop_at, deadline, store_told_at;
  os::Mono begun_at, started_at, ticked;
  bool opening_told = false;
  std::optional<size_t> lost_host;  // the first
  os::Mono lost_at;
  base::Error lost_error;
  std::optional<wire::GuardEnd> lost_guard;  // of that host
  os::nanoseconds slept{0};                  // the launcher did not run for so long, until woke_at
  os::Mono woke_at;
  Stall stall;
  SlowWatch slow;
  int operator_signals = 0;
  bool killed = false;
  std::optional<Verdict> verdict;  // set when the end is decided before the ranks' ends are looked at
};

// wall_less_mono_ns: of our clocks.
State initial_state(Job job, os::Mono now, int64_t wall_less_mono_ns = 0);
// The only way in which the state changes.
Actions step(State& state, const Event& event, os::Mono now);
// Whether the rank is placed on that host, and runs or has run. No host may speak of the ranks of another.
bool is_rank_of(const State& state, size_t host, uint32_t rank);
// Whether all ranks it speaks of are the host's. Of another report nothing is kept, and the frame was malformed.
bool is_of_its_own(const State& state, const HostReported& event);

// Which of the ends came first (verdict.cc). For a run whose ranks are all over.
Verdict judge(const State& state);

}  // namespace phalanx::job
