// What the machine knows of the end of a rank: lines of the kernel's log since the ranks were started, and whether the memory limit of its
// cgroup has killed. Both are looked at when a rank ends badly, never before; what cannot be read is left out.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "machine/storage/mounts.h"
#include "os/family.h"
#include "os/fd.h"
#include "wire/messages.h"

namespace phalanx::agent {

class ExitEvidence {
 public:
  // kernel_log: "/dev/kmsg", or a file of such lines in a test. What it says from here on is kept. own_pids: this process is in a pid
  // namespace, so the log's pids are not those seen here. root: of /proc, for a test.
  explicit ExitEvidence(const std::string& kernel_log = "/dev/kmsg", bool own_pids = os::in_own_pid_namespace(), std::string root = "");

  // program: the file it runs, whose name the kernel's log shows.
  void born(pid_t pid, const std::string& program);
  // A program may be moved to another cgroup, or move itself. In a pid namespace it is known in the kernel's log by the cgroups that it was
  // seen in, and by nothing else.
  void note_cgroup(pid_t pid);
  // At most 2 KiB of lines:
  //   cgroup: /sys/fs/cgroup/memory/job: oom_kill 1 more, limit 62914560
  //   kernel: Memory cgroup out of memory: Killed process 4711 (python3) …
  // status: as from waitpid. Of an end by exit(0) nothing is said.
  std::vector<wire::ExitSign> of(pid_t pid, int status);

 private:
  struct Counter {
    std::string folder;
    int64_t kills = 0;
    bool version_2 = false;
  };
  struct Life {
    std::string name;  // as the kernel shows it: 15 bytes of the program's
    std::vector<Counter> counters;
    std::set<std::string> memory_groups;  // paths as the kernel tells them, without the root
  };
  void read_log();
  std::vector<wire::ExitSign> lines_about(const Life& life, pid_t pid, int status) const;

  os::Fd log_;
  std::deque<std::string> lines_;  // of interest, oldest first
  bool own_pids_;                  // pids of the kernel's log are not ours: we are in a container
  std::string root_;
  std::vector<machine::Mount> mounts_;  // of this process, when first needed
  std::map<pid_t, Life> lives_;
};

// A line of /dev/kmsg ("6,1234,5678,-;text") → the text if it is about a process killed for memory, a crash, a GPU or failing memory; else
// "".
std::string_view kernel_line_of_interest(std::string_view line);

}  // namespace phalanx::agent
