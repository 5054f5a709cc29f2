// Starting programs, and ending whole families of processes.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace os {

struct SpawnSpec {
  std::string program;                    // path, absolute or relative to directory; no PATH search here (find_program)
  std::vector<std::string> arguments;     // argv, argv[0] included
  std::vector<std::string> environment;   // "K=V"
  std::string directory;                  // working directory; empty: the caller's
  std::vector<std::pair<int, int>> fds;   // (ours, child's); every other descriptor is closed in the child. 0, 1, 2 not named: /dev/null
  bool new_session = true;                // setsid: its own process group, no terminal
  int death_signal = 0;                   // PR_SET_PDEATHSIG: sent to the child when the calling process dies
  int nice = 0;
};

// Forks and execs. The error says which step failed in the child (chdir, exec …), with its operand.
// Signals blocked or ignored by the caller are default in the child.
base::Result<pid_t> spawn(const SpawnSpec& spec);

// The file that execvp would run for `name` with this PATH and working directory, checked to be executable.
// For a script, its interpreter (first line) is checked to exist too. Error kUnfit says what is missing.
base::Result<std::string> find_program(const std::string& name, const std::string& path_variable, const std::string& directory);

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';          // R S D Z T …
  unsigned long long start = 0;  // clock ticks after boot; (pid, start) names a process for good
  std::string command;       // comm, at most 15 bytes
};
// Every process that descends from `ancestor` (zombies included), the ancestor not included. Reads /proc.
std::vector<ProcessInfo> descendants(pid_t ancestor);

// SIGKILL to every descendant of the calling process, again and again until none but zombies is left or `most` has passed; reaps
// what it adopts. Returns how many distinct processes were killed. The caller must be a subreaper (become_subreaper) for orphans to be seen.
struct KillOutcome { int killed = 0; int left = 0; };
KillOutcome kill_descendants(std::chrono::milliseconds most);

base::Status become_subreaper();
// What `ps` shows: comm (at most 15 bytes) and, best effort, the argument area.
void set_process_title(char** argv, const std::string& comm, const std::string& title);
std::string signal_name(int signal_number);  // "SIGKILL"

}  // namespace os
