// One run of the real launcher on as many hosts as wanted, all of them played by this process (scale_agents.h), and what it cost.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "os/clock.h"

namespace phalanx::scale {

enum class Ending {
  kFailure,   // one rank fails
  kOperator,  // SIGINT
};

struct Wish {
  std::string phalanx, ssh;  // the launcher; the stand-in
  std::string folder;        // mode 0700; the launcher's home, and where the socket lies
  int hosts = 1;
  int ranks_per_host = 8;
  Ending ending = Ending::kFailure;
  os::milliseconds runs{1500};  // from the last rank's start to the end that is wished for
};

// Times in seconds. Memory and processor time are the launcher's own, without its children.
struct Trial {
  double started = 0;           // from the launcher's start until every agent has been told to start its ranks
  double told = 0;              // from the end that was wished for until the launcher's words of it
  double ended = 0;             // … until it has exited
  double cpu_start = 0;         // processor time until `started`
  double cpu_run = 0;           // a second of the run, while ranks only live
  double cpu_end = 0;           // from the end that was wished for
  int64_t peak_bytes = 0;       // VmHWM
  double start_bytes = 0;       // sent per host until its ranks started, pings left out: the mean
  double most_start_bytes = 0;  // of the host that got most
  double bytes = 0;             // sent per host in the whole run, pings left out
  int exit_code = 0;
  std::string said;  // stdout and stderr, the last 64 KiB
};

// Fails when the launcher ends before it should, does not end within two minutes, or leaves ranks alive.
base::Result<Trial> run_trial(const Wish& wish);

// The soft limit of descriptors becomes 1024 for programs started from here on, and for this process what its hosts need. Fails where the
// hard limit does not allow that.
base::Status set_limits(int hosts);

}  // namespace phalanx::scale
