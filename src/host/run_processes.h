// The processes of one run on this machine, wherever they hang in the process tree: each rank is given PHALANX_RUN_ID, and what it
// starts inherits it; an agent holds the run's scratch folder open (agent/scratch.h). A process that was started with an empty
// environment is not found by this; the agent, whose descendants all of them are, finds it as long as it lives (os/family.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/clock.h"

namespace host {

inline constexpr const char* kRunIdVariable = "PHALANX_RUN_ID";

struct RunProcess {
  int64_t pid = 0;
  int64_t start_ticks = 0;  // with the pid it names a process for good
  std::string command;      // as command_line() shows it
};
// Living ones (no zombies) of this user, or of all users for root. The caller and its ancestors are left out. root: as for probe().
std::vector<RunProcess> run_processes(const std::string& root, const std::string& run_id, os::milliseconds budget);

}  // namespace host
