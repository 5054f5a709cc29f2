// Node 0 of a run that was started by hand on each machine: listens at the master's address until all nodes are there, or until it is known
// that they cannot become one run. Only who proves that he holds the token can end the waiting; all others are dropped and mentioned.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hosts/join/member_facts.h"
#include "os/net.h"
#include "wire/sealed_socket.h"

namespace phalanx::hosts {

struct JoinedNode {
  uint32_t node_rank = 0;
  std::string hostname;
  std::string address;  // that it came from
  os::Fd socket;
  std::string state;  // of its SealedStream; secret
};

struct GatherOptions {
  os::Endpoint listen;
  std::string token;
  MemberFacts own;
  std::chrono::milliseconds patience{600'000};
  std::function<void(const std::string&)> say;  // one line for the user, in English
};

// By node rank, from 1 on. Error: kUsage: the lines contradict each other; kTimeout: nodes are missing; kUnreachable: nobody can listen
// there; kInterrupted. Every node that had joined has then been told the same.
base::Result<std::vector<JoinedNode>> gather(const GatherOptions& options);

// Who competes only with itself for a place among those that have not proved themselves yet: an IPv4 address, or the /64 of an IPv6
// address, all of which one machine may have.
std::string origin_of(const std::string& address);

// Sends one last record to a node that no relay serves, and closes. Waits at most a second.
void tell(JoinedNode& node, wire::RecordType type, std::string_view payload);

// Of kVerdict.
struct JoinVerdict {
  uint32_t exit_code = 0;
  std::string text;
};
std::string encode(const JoinVerdict& verdict);
base::Result<JoinVerdict> decode_join_verdict(std::string_view payload);

}  // namespace phalanx::hosts
