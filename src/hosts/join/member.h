// A node other than 0 of a run that was started by hand on each machine: finds node 0, proves that it holds the token, waits for the
// others, and then runs the agent over this one connection, as sshd would.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hosts/join/gather.h"
#include "hosts/join/member_facts.h"

namespace phalanx::hosts {

struct MemberOptions {
  std::string master;                                   // as the user typed it
  std::function<std::vector<std::string>()> addresses;  // of `master`, numeric; asked before every try; may take a while
  uint16_t port = 0;
  std::string token;
  MemberFacts own;
  std::chrono::milliseconds patience{600'000};  // to find node 0, which then says how long the others are waited for
  std::function<void(const std::string&)> say;  // one line for the user, in English
};

// How the run ended, as node 0 says. Error kUnreachable: no node 0, another token, or node 0 was lost; the agent and its ranks have then
// ended. kUsage, kTimeout: node 0 has refused the run, and why. kInterrupted: Ctrl-C before the start.
base::Result<JoinVerdict> join_run(const MemberOptions& options);

}  // namespace phalanx::hosts
