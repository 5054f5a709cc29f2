// Runs a small program of the system (ip, nft, tc, ssh-keygen), in another network namespace if asked.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace phalanx::testbed {

// netns: a descriptor of a network namespace, or -1. Returns what it printed; a failure carries its stderr.
base::Result<std::string> run_tool(const std::vector<std::string>& argv, const std::string& input = {}, int netns = -1);

}  // namespace phalanx::testbed
