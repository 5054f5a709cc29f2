// A run: a row of attempts. Pure, as the supervisor of one attempt (supervisor.h), which it drives: events go in, actions come out.
//
//   attempt → (ended) → waiting → attempt → … → ended
// An attempt that failed is followed by another as long as restarts are left and another could do better. Every attempt logs in anew, to
// hosts chosen anew, with a token, a store and a plan of its own, after everything of the one before it is known to be gone: each of its
// hosts has said so; or was logged in to once more, and nothing was left there; or is out of reach for longer than its agent's lease, after
// which the agent or its guard has ended everything. So no two attempts are ever alive at once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/supervisor/supervisor.h"

namespace phalanx::job {

inline constexpr os::milliseconds kFirstBackoff{1000};  // doubled with every restart in a row
inline constexpr os::milliseconds kLongestBackoff{60'000};
inline constexpr os::milliseconds kLongAttempt{300'000};   // an attempt that ran so long was a good one: the backoff begins anew
inline constexpr os::milliseconds kLeaseMargin{1500};      // beyond its lease, for an agent or its guard to kill its ranks
inline constexpr os::milliseconds kProofPatience{15'000};  // for a host that was reached to say what is left there

// A host that the run may use: those asked for, then the spares. Its position never changes.
struct Candidate {
  HostRequest request;
  std::optional<os::Mono> out_since;         // lost or unfit then: taken again only when nothing else is left
  std::optional<os::Mono> busy_until;        // its ranks may live so long without us
  std::optional<os::Mono> asked_until = {};  // it is being asked what is left there, and has so much time to answer
};

// What a failure of the program is recognised by.
struct Fingerprint {
  std::string what;             // how it ended and the line that says why, without numbers
  std::optional<int64_t> step;  // of the rank that failed, or of another that tells one
  bool own = true;              // its own word. What another has printed last may be a step behind or ahead
  bool operator==(const Fingerprint& other) const;
};

struct Run {
  Job job;  // as asked for
  std::vector<Candidate> pool;
  std::vector<size_t> members;  // of the pool, in the current attempt or the next: its host list
  State attempt;                // the current one, or the one that ended last
  bool waiting = false;         // for restart_at
  os::Mono restart_at;          // not before; and not while a host of the pool is busy
  int restarts = 0;             // made, of job.max_restarts
  int in_a_row = 0;             // restarts since the last long attempt
  int number = 0;               // of attempts begun after the first; those that replace a host before a start count too
  std::optional<Fingerprint> last_failure;
  bool ended = false;
};

// job.hosts: at least one. The caller opens the hosts of run.attempt.job first.
Run begin_run(Job job, os::Mono now, int64_t wall_less_mono_ns = 0);
Actions step(Run& run, const Event& event, os::Mono now);
// The same for what came over a connection of the attempt with this run.number: of an attempt that has ended nothing is heard.
Actions step(Run& run, const Event& event, os::Mono now, int number);

// The hosts of the next attempt, by position in the pool, for `wanted` places: who was there keeps their place, a ready host that is not
// there takes the place of one that is out, and places without one are dropped down to `least`. Fewer than `least` ready: hosts that
// are out are taken again, who is out longest first: it has had the most time to come back. Pure arithmetic.
std::vector<size_t> next_members(const std::vector<Candidate>& pool, const std::vector<size_t>& members, size_t wanted, size_t least);

// Of a verdict about a rank that ended by itself.
Fingerprint fingerprint(const State& state, const Verdict& verdict);

}  // namespace phalanx::job
