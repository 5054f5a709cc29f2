// A cgroup (version 2) per host: who belongs to it, frozen or not. Only the core of cgroups is used, no controller, so it also
// works beside version 1 hierarchies.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"

namespace phalanx::testbed {

base::Result<std::string> cgroup_root();  // "/sys/fs/cgroup" or wherever cgroup2 is mounted
base::Result<std::string> host_cgroup(const std::string& cluster, const std::string& host);  // its folder; host may be empty

base::Status make_cgroup(const std::string& folder);
base::Status join_cgroup(const std::string& folder);  // this process; async-signal-safe apart from the error
std::vector<pid_t> cgroup_pids(const std::string& folder);
base::Status freeze_cgroup(const std::string& folder, bool frozen);  // returns when it is so
base::Status kill_cgroup(const std::string& folder);                 // SIGKILL to all, frozen ones too; returns when none is left
void remove_cgroup(const std::string& folder);                       // with its subfolders

}  // namespace phalanx::testbed
