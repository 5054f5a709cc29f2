// What a run has left on the hosts.
#pragma once

#include <string>
#include <vector>

#include "cluster.h"

namespace phalanx::testbed {

// "h2: 123 /usr/bin/python3 train.py (python3)" for every process of the hosts but sshd's own, shared ssh connections, and those whose
// command is `bystander`. Waits for them to end for as long as `most` altogether, on the processes themselves, not on a clock.
std::vector<std::string> leftovers(const Cluster& cluster, const std::vector<std::string>& hosts, const std::string& bystander,
                                   milliseconds most);

}  // namespace phalanx::testbed
