// What processes use, read cheaply and often (agent/looks/usage.h): one file of /proc each.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::machine {

struct ProcessUse {
  std::string name;  // comm, safe to print
  char state = '?';
  int64_t parent = 0;
  int64_t major_faults = 0, cpu_ms = 0;  // since it began
  uint64_t start_ticks = 0;
  int64_t rss_kb = 0;
};
// The text of /proc/<pid>/stat or /proc/<pid>/task/<tid>/stat (proc(5)). False: it is none.
bool parse_use(std::string_view stat, ProcessUse& use);
bool read_use(const std::string& stat_file, ProcessUse& use);
bool read_use(pid_t pid, ProcessUse& use);

// For each of `roots`: itself first, then all that descend from it. One pass over /proc for all.
std::vector<std::vector<pid_t>> families(const std::vector<pid_t>& roots);

// The file that counts how long a CPU limit has held the process back: of the nearest of its cgroups that has one, else of its own, which
// may be given one; empty: nothing is counted. Milliseconds since the group began; 0 if it cannot be read.
std::string throttle_file(pid_t pid);
int64_t throttled_ms(const std::string& file);
int64_t throttled_ms_in(std::string_view stat);  // of such a file's text

// How long the process's first thread has waited for a CPU while it could have run, since it began (schedstat: Documentation/scheduler/
// sched-stats); nothing: the kernel does not count it.
std::optional<int64_t> delayed_ms(pid_t pid);
std::optional<int64_t> delayed_ms_in(std::string_view schedstat);

// The time of all CPUs since the machine started, in ticks of proc(5), what of it they had nothing to do, and what a hypervisor has taken.
struct CpuTimes {
  int64_t all = 0, idle = 0, stolen = 0;
};
CpuTimes cpu_times();  // all zero: it cannot be told
CpuTimes cpu_times_in(std::string_view stat);

}  // namespace phalanx::machine
