#include "cases.h"

namespace phalanx::doctor::test {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kGiB = 1 << 30;
machine::LimitsFacts& limits(Situation& s, size_t h) { return s.hosts[h].facts.limits; }

void memory(Situation& s, size_t h, int64_t limit, int64_t used) {
  limits(s, h).cgroup_memory_bytes = limit;
  limits(s, h).cgroup_memory_used_bytes = used;
  limits(s, h).memory_cgroup = "/sys/fs/cgroup/memory/job";
}

std::vector<Case> of_processes() {
  return {
      hit("LIM-NOFILE", "256", plain_ethernet, [](Situation& s) { limits(s, 1).nofile = 256; }),
      hit("LIM-NOFILE", "1024 for 512 ranks", bond_infiniband, [](Situation& s) { limits(s, 1).nofile = 1024, s.job.world = 512; }),
      miss("LIM-NOFILE", "Linux's default for a small job", plain_ethernet,
           [](Situation& s) {
             for (HostView& h : s.hosts) h.facts.limits.nofile = 1024;
           }),
      miss("LIM-NOFILE", "unlimited", plain_ethernet, [](Situation& s) { limits(s, 1).nofile = -1; }),
      hit("LIM-NOFILE-DIFFERS", "1024 among 1048576", plain_ethernet, [](Situation& s) { limits(s, 2).nofile = 1024; }),
      miss("LIM-NOFILE-DIFFERS", "65536 among 1048576", plain_ethernet, [](Situation& s) { limits(s, 2).nofile = 65'536; }),
      miss("LIM-NOFILE-DIFFERS", "all alike", plain_ethernet,
           [](Situation& s) {
             for (HostView& h : s.hosts) h.facts.limits.nofile = 1024;
           }),
      hit("LIM-NPROC", "40 left for two ranks", plain_ethernet,
          [](Situation& s) { limits(s, 0).nproc = 440, limits(s, 0).nproc_used = 400; }),
      miss("LIM-NPROC", "4096", plain_ethernet, [](Situation& s) { limits(s, 0).nproc = 4096; }),
      miss("LIM-NPROC", "root is exempt", docker_host_network, [](Situation& s) { limits(s, 0).nproc = 440; }),
      hit("LIM-PIDS-MAX", "80", docker_host_network,
          [](Situation& s) {
            limits(s, 0).pids_max = 80, limits(s, 0).pids_used = 5, limits(s, 0).pids_cgroup = "/sys/fs/cgroup/pids/docker/abc";
          }),
      miss("LIM-PIDS-MAX", "systemd's default for a user", plain_ethernet, [](Situation& s) { limits(s, 0).pids_max = 10'813; }),
      hit("LIM-NO-PROCESSES", "pids.max 8 holds 7", docker_host_network,
          [](Situation& s) { limits(s, 0).pids_max = 8, limits(s, 0).pids_used = 7; }),
      miss("LIM-NO-PROCESSES", "as many as ranks", docker_host_network,
           [](Situation& s) { limits(s, 0).pids_max = 8, limits(s, 0).pids_used = 4; }),
      hit("LIM-MEMLOCK", "64 KiB and InfiniBand", bond_infiniband, [](Situation& s) { limits(s, 1).memlock = 65'536; }),
      miss("LIM-MEMLOCK", "64 KiB without InfiniBand", plain_ethernet, [](Situation& s) { limits(s, 1).memlock = 65'536; }),
      miss("LIM-MEMLOCK", "root is exempt", bond_infiniband,
           [](Situation& s) { limits(s, 1).memlock = 65'536, s.hosts[1].facts.machine.uid = 0; }),
      miss("LIM-MEMLOCK", "InfiniBand is turned off", bond_infiniband,
           [](Situation& s) { limits(s, 1).memlock = 65'536, s.job.set = {{"NCCL_IB_DISABLE", "1"}}; }),
      hit("LIM-MEMLOCK-LOW", "64 MiB and InfiniBand", bond_infiniband, [](Situation& s) { limits(s, 1).memlock = 64 * kMiB; }),
      miss("LIM-MEMLOCK-LOW", "64 GiB", bond_infiniband, [](Situation& s) { limits(s, 1).memlock = 64 * kGiB; }),
      hit("LIM-STACK-UNLIMITED", "NCCL 2.20", bond_infiniband, [](Situation& s) { limits(s, 0).stack = -1; }),
      miss("LIM-STACK-UNLIMITED", "NCCL 2.30 sees to it itself", bond_infiniband,
           [](Situation& s) { limits(s, 0).stack = -1, s.hosts[0].facts.software.nccl[0].version = "2.30.4+cuda13.0"; }),
      miss("LIM-STACK-UNLIMITED", "no NCCL", plain_ethernet, [](Situation& s) { limits(s, 0).stack = -1; }),
      hit("LIM-FILE-SIZE", "2 GiB", plain_ethernet, [](Situation& s) { limits(s, 0).file_size = 2 * kGiB; }),
      miss("LIM-FILE-SIZE", "not found out", plain_ethernet, [](Situation& s) { limits(s, 0).file_size = 0; }),
      hit("LIM-ADDRESS-SPACE", "64 GiB", single_machine, [](Situation& s) { limits(s, 0).address_space = 64 * kGiB; }),
      miss("LIM-ADDRESS-SPACE", "unlimited", single_machine, [](Situation& s) { limits(s, 0).address_space = -1; }),
  };
}

std::vector<Case> of_the_machine() {
  return {
      hit("LIM-MEMORY-NONE", "64 MiB for four ranks", docker_host_network, [](Situation& s) { memory(s, 0, 64 * kMiB, kMiB); }),
      miss("LIM-MEMORY-NONE", "tight is the other row's", docker_host_network, [](Situation& s) { memory(s, 0, 2 * kGiB, 0); }),
      miss("LIM-MEMORY-NONE", "not PyTorch", docker_host_network,
           [](Situation& s) { memory(s, 0, 64 * kMiB, kMiB), s.hosts[0].facts.software.packages.erase("torch"); }),
      hit("LIM-MEMORY-CGROUP", "2 GiB for four ranks", docker_host_network, [](Situation& s) { memory(s, 0, 2 * kGiB, 0); }),
      miss("LIM-MEMORY-CGROUP", "64 GiB for four ranks", docker_host_network, [](Situation& s) { memory(s, 0, 64 * kGiB, 20 * kGiB); }),
      hit("LIM-CPUSET", "one CPU of 64 for two ranks", plain_ethernet,
          [](Situation& s) { s.hosts[1].facts.machine.cpus_usable = 1, limits(s, 1).cpuset = "0"; }),
      miss("LIM-CPUSET", "a machine of two CPUs", plain_ethernet,
           [](Situation& s) {
             for (HostView& h : s.hosts) h.facts.machine.cpus_online = h.facts.machine.cpus_usable = 2, h.ranks = 4;
           }),
      hit("LIM-CPUSET-DIFFERS", "16 of 64 on one", plain_ethernet, [](Situation& s) { s.hosts[1].facts.machine.cpus_usable = 16; }),
      miss("LIM-CPUSET-DIFFERS", "a smaller machine", plain_ethernet,
           [](Situation& s) { s.hosts[1].facts.machine.cpus_usable = s.hosts[1].facts.machine.cpus_online = 16; }),
      hit("LIM-CPU-QUOTA", "two CPUs for four ranks", docker_host_network, [](Situation& s) { limits(s, 0).cpu_quota = 2; }),
      miss("LIM-CPU-QUOTA", "32 for four", docker_host_network, [](Situation& s) { limits(s, 0).cpu_quota = 32; }),
      hit("LIM-OVERCOMMIT", "2", plain_ethernet, [](Situation& s) { limits(s, 0).overcommit = 2; }),
      miss("LIM-OVERCOMMIT", "1", plain_ethernet, [](Situation& s) { limits(s, 0).overcommit = 1; }),
      hit("LIM-MAP-COUNT", "32768", plain_ethernet, [](Situation& s) { limits(s, 0).max_map_count = 32'768; }),
      miss("LIM-MAP-COUNT", "the default", plain_ethernet, [](Situation& s) { limits(s, 0).max_map_count = 65'530; }),
      hit("LIM-PTRACE", "for the administrator only", plain_ethernet, [](Situation& s) { limits(s, 0).ptrace_scope = 2; }),
      miss("LIM-PTRACE", "Ubuntu's default", plain_ethernet, [](Situation& s) { limits(s, 0).ptrace_scope = 1; }),
      hit("LIM-SWAP", "30 GiB out, 8 of 512 left", plain_ethernet,
          [](Situation& s) { limits(s, 0).swap_used_bytes = 30 * kGiB, s.hosts[0].facts.machine.memory_available_bytes = 8 * kGiB; }),
      miss("LIM-SWAP", "swapped out long ago", plain_ethernet, [](Situation& s) { limits(s, 0).swap_used_bytes = 30 * kGiB; }),
      hit("LIM-BUSY", "load 80 on 64", plain_ethernet, [](Situation& s) { limits(s, 0).load_1min = 80; }),
      miss("LIM-BUSY", "load 20 on 64", plain_ethernet, [](Situation& s) { limits(s, 0).load_1min = 20; }),
  };
}

}  // namespace

std::vector<Case> limits_cases() {
  std::vector<Case> all = of_processes();
  for (Case& c : of_the_machine()) all.push_back(std::move(c));
  return all;
}

}  // namespace phalanx::doctor::test
