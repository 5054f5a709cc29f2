// Which of the known hosts and slots to use: --include, --exclude, --nnodes. Pure. Grammar: docs/formats/hostfile.md.
//
// NAME[:SLOT[,SLOT...]][@NAME...] as DeepSpeed documents it (and, until its fix of 2026, did not do it): a host without
// slots means the whole host. Accepted beyond it: ranges of slots (0-2), ranges of names (gpu[01-04]), [IPv6]. A host or
// slot that does not exist is an error naming those that do. The order of the host list is kept; slots ascend.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "hosts/lists/host_list.h"

namespace phalanx::hosts {

// Only what `filter` names. Errors: kUsage; `flag` is the flag as the user knows it.
base::Result<HostList> include_hosts(HostList hosts, std::string_view filter, std::string_view flag = "--include");

// All but what `filter` names. A host that loses its last known slot is left out whole. Leaving out everything is an error.
base::Result<HostList> exclude_hosts(HostList hosts, std::string_view filter, std::string_view flag = "--exclude");

// The first `count` hosts. Fewer is an error: kUsage.
base::Result<HostList> first_hosts(HostList hosts, int count);

// The slot ids of a host that the job uses, ascending, once the number of slots is known: host.slots where the user wrote
// it, else `probed`. Error (kUnfit): a selected slot that the host does not have, or none left.
base::Result<std::vector<int>> used_slots(const HostSpec& host, int probed);

}  // namespace phalanx::hosts
