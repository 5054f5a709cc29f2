// OpenMP threads of a rank: the CPUs its host really has for it. torchrun sets 1 where several ranks share a host, and data
// preparation crawls; unset, every rank starts a thread per CPU and they fight. One formula, for the agent and for the plan.
#pragma once

#include <algorithm>
#include <cstdint>

namespace phalanx::machine {

// cpus: that the process may run on (sched_getaffinity). quota: of the cgroup, in CPUs; 0: none.
inline int64_t threads_per_rank(int64_t cpus, double quota, int64_t ranks) {
  if (quota > 0) cpus = std::min(cpus, static_cast<int64_t>(quota));
  return std::max<int64_t>(1, cpus / std::max<int64_t>(1, ranks));
}

}  // namespace phalanx::machine
