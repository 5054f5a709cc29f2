// Four clusters that are well, as a probe would see them: what tests of doctor, job and view start from.
#pragma once

#include "doctor/situation.h"

namespace phalanx::doctor::test {

// No row of the catalogue may say anything worse than a note of them.
Situation plain_ethernet();       // 4 hosts, 10 Gbit/s, no GPU
Situation bond_infiniband();      // 4 hosts × 8 A100, bond0, four InfiniBand HCAs
Situation docker_host_network();  // 2 hosts × 4 A10, containers with --network host, docker0 present
Situation single_machine();       // 1 host × 2 RTX 3090

}  // namespace phalanx::doctor::test
