// The nodes of the Slurm allocation that the launcher was started in, as sbatch and salloc tell it (sbatch(1), OUTPUT ENVIRONMENT
// VARIABLES). Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "hosts/lists/host_list.h"

namespace phalanx::hosts {

struct Allocation {
  std::string job;  // digits
  HostList hosts;   // in the order of the node list; slots: the tasks per node that were asked for, if more than one
};

// none: there is no allocation. Errors: kConfig, a variable that cannot be read; kUsage, one of several tasks of srun, each of which would
// start the whole run.
// One task per node, Slurm's default and what scripts for torchrun ask for, says nothing about ranks: that is left to --nproc-per-node and
// the GPUs of the node.
using Variable = std::function<std::string(const char* name)>;  // empty: not set
base::Result<std::optional<Allocation>> slurm_allocation(const Variable& variable);

// SLURM_TASKS_PER_NODE and SLURM_JOB_CPUS_PER_NODE: "8(x2),4" is 8, 8, 4. At most `most` numbers. Errors: kConfig.
base::Result<std::vector<int>> parse_repeated_counts(std::string_view text, std::string_view source, size_t most);

}  // namespace phalanx::hosts
