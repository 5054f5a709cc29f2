// A process and all that descends from it: seen through /proc, ended as a whole.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"

namespace phalanx::os {

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;               // process group
  char state = '?';              // R S D Z T …
  unsigned long long start = 0;  // clock ticks after boot; (pid, start) names a process for good
  std::string command;           // comm, at most 15 bytes
};
// Every process that descends from `ancestor` (zombies included), the ancestor not included. Reads /proc. unseen: why there may be more;
// untouched where there are none. Of the calling process the kernel says whether it has a child, so /proc cannot hide the last one.
std::vector<ProcessInfo> descendants(pid_t ancestor, std::string* unseen = nullptr);

// Sends a signal to the process that was started then, and never to another one that was given its pid since. False: it is no more.
bool signal_process(pid_t pid, unsigned long long start, int signal_number);

// This process is not in the machine's first pid namespace: pids that the kernel's log or a driver tells are not those seen here.
bool in_own_pid_namespace();

// SIGKILL to every descendant of the calling process, again and again until none but zombies is left or `most` has passed; reaps
// what it adopts. Where new ones keep coming, all are stopped before any is killed: what is stopped does not fork, and keeps its place
// below the limit of processes. Returns how many distinct processes were killed. The caller must be a subreaper (become_subreaper) for
// orphans to be seen.
struct KillOutcome {
  int killed = 0;
  int left = 0;        // at least one where `unseen` is not empty
  std::string unseen;  // why there may be more: as of descendants()
};
KillOutcome kill_descendants(std::chrono::milliseconds most);
base::Status become_subreaper();

}  // namespace phalanx::os
