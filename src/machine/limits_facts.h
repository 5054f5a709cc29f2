// Limits of the process that would start the ranks: rlimits, cgroups, kernel. -1 means unlimited, 0 not found out.
#pragma once

#include <cstdint>
#include <string>

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
template <typename V>
void fields(V& v, LimitsFacts& f) {
  v("nofile", f.nofile);
  v("nofile_hard", f.nofile_hard);
  v("nproc", f.nproc);
  v("nproc_hard", f.nproc_hard);
  v("nproc_used", f.nproc_used);
  v("memlock", f.memlock);
  v("memlock_hard", f.memlock_hard);
  v("stack", f.stack);
  v("core", f.core);
  v("address_space", f.address_space);
  v("file_size", f.file_size);
  v("pids_max", f.pids_max);
  v("pids_used", f.pids_used);
  v("pids_cgroup", f.pids_cgroup);
  v("cgroup_memory_bytes", f.cgroup_memory_bytes);
  v("cgroup_memory_used_bytes", f.cgroup_memory_used_bytes);
  v("memory_cgroup", f.memory_cgroup);
  v("cpuset", f.cpuset);
  v("cpu_quota", f.cpu_quota);
  v("threads_max", f.threads_max);
  v("pid_max", f.pid_max);
  v("max_map_count", f.max_map_count);
  v("overcommit", f.overcommit);
  v("ptrace_scope", f.ptrace_scope);
  v("governor", f.governor);
  v("load_1min", f.load_1min);
  v("swap_used_bytes", f.swap_used_bytes);
}

}  // namespace phalanx::machine
