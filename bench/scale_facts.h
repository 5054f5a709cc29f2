// What the hosts of `bench/scale.sh` are: machines with eight A100 and four InfiniBand adapters that are well, each with addresses,
// adapters, GPUs and a boot of its own.
#pragma once

#include <string>
#include <vector>

#include "wire/check_messages.h"

namespace phalanx::scale {

std::string host_name(int host);  // "h0001" for 0

// Of bond0 and the four InfiniBand interfaces.
std::vector<wire::Address> addresses_of(int host);

// machine::Facts as JSON, as the host's agent would answer this probe.
std::string facts_of(int host, const wire::Probe& probe);

}  // namespace phalanx::scale
