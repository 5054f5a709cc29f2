// One attempt to run the ranks: a pure machine, from the plan to the end of everything that was started.
//
//   preparing → reaching → running → stopping → finishing → ended
// preparing: every host checks directory and program, rank 0's host binds the store. reaching: every other host really connects to it.
// After that it is fixed for good who runs where; no rank runs before. running: until the first failure, a lost host, the operator, or all
// ranks done. stopping: SIGTERM, grace, SIGKILL. finishing: every host ends what is left and says so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/plan.h"
#include "job/stall.h"
#include "job/turn.h"

namespace phalanx::job {

enum class Phase { kOpening, kChecking, kPreparing, kReaching, kRunning, kStopping, kFinishing, kEnded };

// Deadlines. Durations on the launcher's clock.
inline constexpr os::milliseconds kSettle{1500};  // after the first refusal: wait for others, to name all at once
inline constexpr os::milliseconds kReachTimeout{3000};
inline constexpr os::milliseconds kStoreSilence{10'000};  // after start: who has not met the store
inline constexpr os::milliseconds kKillPatience{3000};    // after SIGKILL
inline constexpr os::milliseconds kFinishPatience{5000};

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

struct Attempt {
  Phase phase = Phase::kOpening;
  std::optional<Plan> plan;
  std::vector<RankState> ranks;
  std::vector<std::string> addresses;  // left to try, best first
  size_t address = 0;                  // the one being tried
  bool by_memory = false;              // of an earlier run's network: the path to the store was tried minutes ago
  std::optional<Meeting> meeting;
  std::optional<base::Error> first_reach_error;
  uint32_t port_holder = 0;  // of --master-port: who listens there, as the host says
  std::optional<os::Mono> settle_at, stop_at, deadline, store_told_at;
  os::Mono started_at;
  std::optional<size_t> lost_host;  // the first
  os::Mono lost_at;
  base::Error lost_error;
  std::optional<wire::GuardEnd> lost_guard;  // of that host
  Stall stall;
  SlowWatch slow;
  int operator_signals = 0;
  bool killed = false;
  std::optional<Verdict> verdict;  // set when the end is decided before the ranks' ends are looked at
};

// Whether the rank is placed on that host, and runs or has run. No host may speak of the ranks of another.
bool is_rank_of(const Attempt& attempt, size_t host, uint32_t rank);

// Which of the ends came first (verdict.cc). For an attempt whose ranks are all over.
Verdict judge(const Attempt& attempt, const std::vector<HostState>& hosts);

}  // namespace phalanx::job
