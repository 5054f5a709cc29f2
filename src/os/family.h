// A process and all that descends from it: seen through /proc, ended as a whole.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"

namespace os {

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;               // process group
  char state = '?';              // R S D Z T …
  unsigned long long start = 0;  // clock ticks after boot; (pid, start) names a process for good
  std::string command;           // comm, at most 15 bytes
};
// Every process that descends from `ancestor` (zombies included), the ancestor not included. Reads /proc.
std::vector<ProcessInfo> descendants(pid_t ancestor);

// This process is not in the machine's first pid namespace: pids that the kernel's log or a driver tells are not those seen here.
bool in_own_pid_namespace();

// SIGKILL to every descendant of the calling process, again and again until none but zombies is left or `most` has passed; reaps
// what it adopts. Returns how many distinct processes were killed. The caller must be a subreaper (become_subreaper) for orphans to be
// seen.
struct KillOutcome {
  int killed = 0;
  int left = 0;
};
KillOutcome kill_descendants(std::chrono::milliseconds most);
base::Status become_subreaper();

}  // namespace os
