// Faults of a training that runs, each with the verdict that is right: what the fault tests hold `phalanx run` against, and the bench puts
// beside torchrun.
#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "cluster.h"

namespace phalanx::testbed {

// How a launcher's processes are found on a host by Cluster::kill_processes.
struct Names {
  std::string rank = "trainer.py", agent = "phalanx-agent";
};

struct InjectedFault {
  std::string name;    // of scripts/trainer.py's FAULT, unless `strike` is given: then it is done from outside, once both ranks train
  std::string code;    // of the verdict
  int rank = 1;        // of the verdict; -1: it names the host, or both ranks where their link is what broke
  std::string says{};  // in the evidence or the error; may be empty
  std::function<base::Status(const Cluster&, const Names&)> strike{};
  milliseconds most{3000};  // from the fault to the prompt; an interpreter takes a second of it to end
  bool host_is_gone = false;
  bool stalls = false;
  bool by_default = false;  // it stalls, and is told with default options: it is proved, or certain whatever comes next
  bool only_ours = false;   // it strikes a process that other launchers have no counterpart of
};

void PrintTo(const InjectedFault& fault, std::ostream* stream);  // for gtest's messages
// On two hosts, h1 with rank 0 and h2 with rank 1, which is the one that goes wrong.
std::vector<InjectedFault> end_faults();
// The same, and the run stands still instead of ending.
std::vector<InjectedFault> stall_faults();
// … and is told of with default options, without stopping, within this time.
std::vector<InjectedFault> proved_faults();
inline constexpr milliseconds kProvedAfter{10'000};
inline constexpr milliseconds kStallAfter{5000};  // for `phalanx run --stall`, with these

// A memory cgroup of 200 MiB, of version 1 where that is mounted, for one that takes too much; "" where none can be made.
class MemoryGroup {
 public:
  MemoryGroup();
  ~MemoryGroup();
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

// What the fault needs: the hosts, and what trainer.py is told.
Options cluster_for(const InjectedFault& fault);
std::map<std::string, std::string> environment_for(const InjectedFault& fault, const MemoryGroup& group);
// Waits until trainer.py has written this file of its own on the host.
bool await_file(const Cluster& cluster, const std::string& host, const std::string& path, milliseconds most);
// When trainer.py went wrong by itself, on this machine's monotonic clock; 0: it has not.
int64_t struck_at(const Cluster& cluster, const std::string& host);

}  // namespace phalanx::testbed
