// Limits of the process that would start the ranks: rlimits, cgroups, kernel. -1 means unlimited, 0 not found out.
#pragma once

#include <cstdint>
#include <string>

#include "base/fields.h"

namespace phalanx::machine {

struct LimitsFacts {
  int64_t nofile = 0, nofile_hard = 0;
  int64_t nproc = 0, nproc_hard = 0;
  int64_t nproc_used = 0;  // threads of this user
  int64_t memlock = 0, memlock_hard = 0;
  int64_t stack = 0, core = 0, address_space = 0, file_size = 0;
  int64_t pids_max = 0, pids_used = 0;  // the tightest cgroup above us
  std::string pids_cgroup;
  int64_t cgroup_memory_bytes = 0, cgroup_memory_used_bytes = 0;
  std::string memory_cgroup;
  std::string cpuset;    // "0-7", of the cgroup
  double cpu_quota = 0;  // CPUs; 0: none
  int64_t threads_max = 0, pid_max = 0, max_map_count = 0;
  int64_t overcommit = -1;  // vm.overcommit_memory
  int64_t ptrace_scope = -1;
  std::string governor;  // of cpu0: "performance", "powersave"
  double load_1min = 0;
  int64_t swap_used_bytes = 0;
};
PHALANX_FIELDS(LimitsFacts, nofile, nofile_hard, nproc, nproc_hard, nproc_used, memlock, memlock_hard, stack, core, address_space,
               file_size, pids_max, pids_used, pids_cgroup, cgroup_memory_bytes, cgroup_memory_used_bytes, memory_cgroup, cpuset, cpu_quota,
               threads_max, pid_max, max_map_count, overcommit, ptrace_scope, governor, load_1min, swap_used_bytes);

}  // namespace phalanx::machine
