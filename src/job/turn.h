// What the machines of a run work with in one step: the job, the hosts as they are known, the time, and the actions collected so far.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "job/events.h"
#include "job/job.h"

namespace phalanx::job {

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

struct Turn {
  const Job& job;
  std::vector<HostState>& hosts;
  os::Mono now;
  Actions& actions;

  void send(size_t host, ToHost message) { actions.push_back(Send{host, std::move(message)}); }
  void tell(Note note) { actions.push_back(Tell{std::move(note)}); }
  bool alive(size_t h) const { return hosts[h].open && !hosts[h].ended; }
  void ping(size_t h) {
    hosts[h].pinged = now;
    send(h, wire::Ping{++hosts[h].nonce, now.ns});
  }
};

template <typename Predicate>
bool all_hosts(const std::vector<HostState>& hosts, Predicate predicate) {
  return std::all_of(hosts.begin(), hosts.end(), predicate);
}

}  // namespace phalanx::job
