// Starting programs.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "os/fd.h"

namespace phalanx::os {

struct SpawnSpec {
  std::string program;                   // path, absolute or relative to directory; no PATH search here (find_program)
  std::vector<std::string> arguments;    // argv, argv[0] included
  std::vector<std::string> environment;  // "K=V"
  std::string directory;                 // working directory; empty: the caller's
  std::vector<std::pair<int, int>> fds;  // (ours, child's); every other descriptor is closed in the child. 0, 1, 2 not named: /dev/null
  bool new_session = true;               // setsid: its own process group, no terminal
  int death_signal = 0;                  // PR_SET_PDEATHSIG: sent to the child when the calling process dies
  int nice = 0;
  int join_cgroup = -1;  // a descriptor of cgroup.procs of a group of version 2: the child is in it before it execs. Best effort
};

// Forks and execs. The error says which step failed in the child (chdir, exec …), with its operand.
// Signals blocked or ignored by the caller are default in the child, and the limit of descriptors is the one this program began with.
base::Result<pid_t> spawn(const SpawnSpec& spec);

// The same for a caller that must not wait: chdir and exec may hang for as long as a file system does.
struct Starting {
  pid_t pid = 0;
  Fd report;  // non-blocking; readable when the program runs, or when it cannot
};
base::Result<Starting> begin_spawn(const SpawnSpec& spec);
// To be called when the report is readable, or the child has ended. The error is spawn()'s; the child then has ended or is about to, and is
// the caller's to reap. No value: it is still on its way.
std::optional<base::Status> spawned(const SpawnSpec& spec, const Starting& starting);

// What `ps` shows: comm (at most 15 bytes) and, best effort, the argument area.
void set_process_title(char** argv, const std::string& comm, const std::string& title);
std::string signal_name(int signal_number);  // "SIGKILL"
bool is_ignored(int signal_number);          // by this process; exec keeps it, as after nohup or trap ''

}  // namespace phalanx::os
