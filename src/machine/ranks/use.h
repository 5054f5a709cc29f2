// What processes use, read cheaply and often (agent/looks/usage.h): one file of /proc each.
#pragma once

#include <sys/types.h>

#include <cstdint>
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

// The file that counts how long the CPU limit of the process's own cgroup has held it back; empty: there is no limit, and nothing to
// count. Milliseconds since the group began; 0 if it cannot be read.
std::string throttle_file(pid_t pid);
int64_t throttled_ms(const std::string& file);
int64_t throttled_ms_in(std::string_view stat);  // of such a file's text

}  // namespace phalanx::machine
