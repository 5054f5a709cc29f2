#include "cases.h"

namespace phalanx::doctor::test {

std::vector<Case> speed_host_cases() {
  return {
      hit("PERF-OMP-MANY", "64 threads for each of 8 ranks on 64 CPUs", bond_infiniband,
          [](Situation& s) { s.job.set = {{"OMP_NUM_THREADS", "64"}}; }),
      miss("PERF-OMP-MANY", "8 threads each fill the machine", bond_infiniband,
           [](Situation& s) { s.job.set = {{"OMP_NUM_THREADS", "8"}}; }),
      hit("PERF-OMP-ONE", "torchrun's 1 was copied into .bashrc", bond_infiniband,
          [](Situation& s) { s.hosts[1].facts.software.environment["OMP_NUM_THREADS"] = "1"; }),
      miss("PERF-OMP-ONE", "two CPUs per rank", bond_infiniband,
           [](Situation& s) {
             s.hosts[1].facts.software.environment["OMP_NUM_THREADS"] = "1";
             s.hosts[1].facts.machine.cpus_usable = 16;
           }),
      hit("PERF-GOVERNOR", "powersave", plain_ethernet, [](Situation& s) { s.hosts[2].facts.limits.governor = "powersave"; }),
      miss("PERF-GOVERNOR", "schedutil follows the load", plain_ethernet,
           [](Situation& s) { s.hosts[2].facts.limits.governor = "schedutil"; }),
      hit("PERF-NUMA", "CPUs of one socket, GPUs of both", bond_infiniband, [](Situation& s) { s.hosts[0].facts.limits.cpuset = "0-31"; }),
      miss("PERF-NUMA", "a few CPUs of each", bond_infiniband, [](Situation& s) { s.hosts[0].facts.limits.cpuset = "0-15,32-47"; }),
      hit("PERF-HOSTS-UNEQUAL", "half the memory is gone", bond_infiniband,
          [](Situation& s) { s.hosts[3].facts.machine.memory_bytes /= 2; }),
      miss("PERF-HOSTS-UNEQUAL", "56 of 64 CPUs", bond_infiniband, [](Situation& s) { s.hosts[3].facts.machine.cpus_usable = 56; }),
      hit("PERF-PXN", "left from a test", bond_infiniband, [](Situation& s) { s.job.set = {{"NCCL_PXN_DISABLE", "1"}}; }),
      miss("PERF-PXN", "without NVSwitch it changes little", docker_host_network,
           [](Situation& s) { s.job.set = {{"NCCL_PXN_DISABLE", "1"}}; }),
      hit("PERF-SOCKET-THREADS", "100 Gbit/s without verbs", docker_host_network,
          [](Situation& s) {
            for (HostView& h : s.hosts) h.facts.network.interfaces[1].speed_mbps = 100'000;
          }),
      miss("PERF-SOCKET-THREADS", "20 Gbit/s is what one thread moves", docker_host_network, [](Situation&) {}),
      miss("PERF-SOCKET-THREADS", "InfiniBand carries the data", bond_infiniband, [](Situation&) {}),
  };
}

}  // namespace phalanx::doctor::test
