// The control groups above this process, version 1 and 2, also mixed and inside containers (cgroups(7)).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "machine/storage/mounts.h"

namespace phalanx::machine {

// A line of /proc/self/cgroup: "4:memory:/user.slice", "0::/init.scope".
struct CgroupLine {
  std::vector<std::string> controllers;  // empty: version 2
  std::string path;
};
// At most 64 lines.
std::vector<CgroupLine> parse_cgroup(std::string_view text);

// The folders in which a controller limits us, our own first, then those above it up to its mount. All exist only as far as the
// mounts are to be believed; reading a file of a folder that is not there fails and says nothing.
struct CgroupChain {
  std::vector<std::string> folders;  // absolute, not yet under a root
  bool version_2 = false;
};
// Version 1 if the controller is mounted so; else version 2. At most 64 folders.
CgroupChain cgroup_chain(std::string_view controller, const std::vector<CgroupLine>& lines, const std::vector<Mount>& mounts);

}  // namespace phalanx::machine
