// The processes of one run on this machine, wherever they hang in the process tree. A process is the run's
//   by its environment   each rank is given PHALANX_RUN_ID, and what it starts inherits it
//   by its scratch       an agent holds the run's scratch folder open (agent/scratch.h)
//   by its cgroup        its agent has made one for the ranks and all they start (machine/own_cgroup.h), and has written down which
//   by what its agent has written down (RunEvidence), or because its parent, or the leader of its session, is one of these
// Of a process whose environment cannot be read, or was overwritten (setproctitle), and that is found by none of these, it cannot be told.
// It is not called absent: it is named, if an agent of the run did not come to an orderly end here, and the process is younger than that
// agent and has lost its parent.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "os/clock.h"

namespace phalanx::machine {

inline constexpr const char* kRunIdVariable = "PHALANX_RUN_ID";

struct RunProcess {
  int64_t pid = 0;
  int64_t start_ticks = 0;  // with the pid it names a process for good
  std::string command;      // as command_line() shows it
};

// What an agent of the run, which is no more, has written down.
struct RunEvidence {
  std::set<std::pair<int64_t, int64_t>> family;  // (pid, start): its guard, itself, and their descendants
  int64_t since_ticks = 0;                       // when it was started; 0: there was none
  std::string login;                             // its cgroup, if that is of one login ("…/session-12.scope")
  std::vector<std::string> cgroups;              // in which its ranks were (machine/own_cgroup.h)
};

// What could not be looked at: a process, or (pid 0) something that processes of the run may be in.
struct Unseen {
  int64_t pid = 0;
  std::string text;  // with the reason
};
struct RunLook {
  std::vector<RunProcess> found;
  std::vector<Unseen> unseen;  // at most kMostUnseen
};
inline constexpr size_t kMostUnseen = 16;

// Living ones (no zombies) of this user, or of all users for root. The caller and its ancestors are left out. root: as for probe().
RunLook run_processes(const std::string& root, const std::string& run_id, const RunEvidence& evidence, os::milliseconds budget);

// The path in a /proc/<pid>/cgroup of the login that this process belongs to; "" where no login has one of its own.
std::string login_cgroup(const std::string& cgroup_text);

}  // namespace phalanx::machine
