// The agent: one per host and run. Answers the launcher's frames on stdin with frames on stdout, starts the ranks,
// ships their output, serves the store on rank 0's host, and leaves nothing behind:
//   stdin closed, stream broken, lease over, guard gone or silent, SIGTERM → every descendant is killed, the agent exits.
#pragma once

#include <string>

#include "os/fd.h"

namespace phalanx::agent {

// orders, answers: the pipes to and from the guard, which is the parent of this process (guard_link.h). build: as for run_guarded().
// Returns the exit code.
int run_agent(os::Fd orders, os::Fd answers, const std::string& build);

}  // namespace phalanx::agent
