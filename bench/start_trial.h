// One launch, timed from outside: the commands are started at once, the arrival of every rank's line is noted, and the end.
//
// Every rank is `start_rank`: it prints one line, "start-rank <monotonic ns>", and exits at once. The hosts of the test cluster share
// one kernel and so one monotonic clock: what a rank prints can be held against the time here.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "os/clock.h"

namespace phalanx::bench {

using Words = std::vector<std::string>;

struct Launch {
  std::vector<Words> commands;  // started one after another without a pause; argv[0] is looked up in PATH
  Words environment;            // "K=V", on top of this process's own
};

struct Trial {
  os::nanoseconds first{0}, last{0};  // from the start to the first and the last rank's line
  os::nanoseconds prompt{0};          // from the last rank's exit to the last command's
  os::nanoseconds whole{0};
};

// Fails when a command does, or when not exactly `ranks` lines came within two minutes.
base::Result<Trial> run_trial(const Launch& launch, int ranks);

// Runs the commands at once, output thrown away, and waits for them. For preparing and tidying between trials.
base::Status run_quietly(const Launch& launch);

// Processor time of this host and of its whole cluster until now. Nothing off the test cluster.
struct ProcessorTime {
  double here_s = 0, cluster_s = 0;
};
ProcessorTime processor_time();

}  // namespace phalanx::bench
