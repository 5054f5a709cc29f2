// The mesh test: real TCP connections between the hosts of a job, before any rank runs. This file is the plan and the result;
// agent/mesh/listener.h and agent/mesh/dialer.h listen and dial; the supervisor (job/) drives the rounds.
//
// Every dial sends a payload larger than any MTU and gets it back, so that a path that only passes small packets is found, and
// says a token, so that an answer from another host or program is not taken for the peer's.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "wire/link_outcome.h"

namespace phalanx::hosts {

// One connection that was tried, from one host to another.
struct Link {
  int64_t from = 0, to = 0;  // positions in the host list
  std::string address;       // of `to`
  int64_t port = 0;
  bool master_port = false;  // the port of MASTER_PORT, not an ephemeral one
  wire::LinkOutcome outcome = wire::LinkOutcome::kNone;
  int64_t error_number = 0;
  int64_t connect_ns = 0;        // to the connection, or to its failure
  int64_t round_trip_ns = 0;     // the least of several small echoes; 0: not measured
  int64_t bytes_per_second = 0;  // of the burst, while no other of the two hosts goes on; 0: not measured
  int64_t segments = 0;          // with data that were sent, and of them those sent again (TCP_INFO)
  int64_t retransmits = 0;
  std::string local_address;  // that the kernel chose to send from
};
template <typename V>
void fields(V& v, Link& f) {
  v("from", f.from);
  v("to", f.to);
  v("address", f.address);
  v("port", f.port);
  v("master_port", f.master_port);
  std::string outcome(wire::name_of(f.outcome));
  v("outcome", outcome);
  f.outcome = wire::link_outcome(outcome).value_or(wire::LinkOutcome::kError);
  v("error_number", f.error_number);
  v("connect_ns", f.connect_ns);
  v("round_trip_ns", f.round_trip_ns);
  v("bytes_per_second", f.bytes_per_second);
  v("segments", f.segments);
  v("retransmits", f.retransmits);
  v("local_address", f.local_address);
}

struct Mesh {
  std::vector<Link> links;
  bool complete = false;  // all pairs were tried; else rings and random pairs
};
PHALANX_FIELDS(Mesh, links, complete);

// Which hosts talk when: in one round every host is in at most one pair, so that bursts do not disturb each other. Both
// directions of every pair up to 16 hosts (round-robin tournament); above, two rings (to the next and to the one eight further) and
// `hosts` random pairs from `seed`.
using Pair = std::pair<int, int>;
std::vector<std::vector<Pair>> mesh_rounds(int hosts, uint32_t seed);

}  // namespace phalanx::hosts
