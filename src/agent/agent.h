// The agent: one per host and run. Answers the launcher's frames on stdin with frames on stdout, starts the ranks,
// ships their output, serves the store on rank 0's host, and leaves nothing behind:
//   stdin closed, stream broken, lease over, guard gone, SIGTERM → every descendant is killed, the agent exits.
#pragma once

#include "os/fd.h"

namespace agent {

// lifeline: becomes readable (end of file) when the guard dies. Returns the exit code.
int run_agent(os::Fd lifeline);

}  // namespace agent
