// The control group of the ranks (machine/own_cgroup.h) beside the look at /proc: both must say that nothing is left.
#pragma once

#include <chrono>
#include <string>

#include "os/family.h"

namespace phalanx::agent {

// os::kill_descendants(), and cgroup.kill for what is left after it: what forks faster than /proc can be read, or is not shown there.
// cgroup: a path, or empty where there is none. It is removed when it is empty; while it is not, at least one process is left.
os::KillOutcome kill_family(const std::string& cgroup, std::chrono::milliseconds most);

// What the group still holds though /proc shows nothing (childless); "" if that is nothing.
std::string hidden_in(const std::string& cgroup, bool childless);

}  // namespace phalanx::agent
