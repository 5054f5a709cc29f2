// Pid 1 of a host: makes the host's view of the file system, gives the network its address, starts sshd, then reaps.
#pragma once

#include <string>
#include <vector>

#include "cluster.h"
#include "users.h"

namespace phalanx::testbed {

struct HostPlan {
  HostOptions options;           // with its name
  bool ssh_as_it_comes = false;  // as of Options
  int index = 0;                 // 0: ctl
  std::string address;           // 10.77.0.<index>
  std::string cgroup;            // its folder
  std::string hosts_file;        // of all hosts
  std::string client_key, client_public, host_key, known_hosts;
  UserKeys worker;
  std::vector<std::string> visible;  // folders that stay reachable though a covered one contains them
  // Folders of this machine under another name: (folder, name).
  std::vector<std::pair<std::string, std::string>> renamed;
};

std::string host_address(int index);

// Called in a fresh child that has its own pid, mount, uts and ipc namespaces. Writes "ok" or an error to `ready` once. Never returns.
[[noreturn]] void run_host(const HostPlan& plan, int netns, int ready);

}  // namespace phalanx::testbed
