// Every row of the catalogue is held against cases: situations that must trigger it and near misses that must not.
// A group's cases stand in <group>_cases.cc; catalogue_test.cc runs them all and fails for a row without both kinds.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/examine.h"

namespace doctor::test {

// Four clusters that are well. No row may say anything worse than a note of them.
Situation plain_ethernet();       // 4 hosts, 10 Gbit/s, no GPU
Situation bond_infiniband();      // 4 hosts × 8 A100, bond0, four InfiniBand HCAs
Situation docker_host_network();  // 2 hosts × 4 A10, containers with --network host, docker0 present
Situation single_machine();       // 1 host × 2 RTX 3090

struct Case {
  std::string_view code;
  bool triggers = true;  // false: a near miss
  std::string_view what;
  std::function<Situation()> make;
};
std::vector<Case> gpu_cases();
std::vector<Case> visibility_cases();
std::vector<Case> network_cases();
std::vector<Case> infiniband_cases();
std::vector<Case> nccl_cases();
std::vector<Case> rendezvous_cases();
std::vector<Case> software_cases();
std::vector<Case> storage_cases();
std::vector<Case> time_cases();
std::vector<Case> limits_cases();
std::vector<Case> process_cases();
std::vector<Case> command_cases();
std::vector<Case> data_cases();
std::vector<Case> speed_cases();

// A case from a healthy cluster and one change.
template <typename Change>
Case hit(std::string_view code, std::string_view what, Situation (*base)(), Change change) {
  return {code, true, what, [base, change] {
            Situation s = base();
            change(s);
            return s;
          }};
}
template <typename Change>
Case miss(std::string_view code, std::string_view what, Situation (*base)(), Change change) {
  return {code, false, what, [base, change] {
            Situation s = base();
            change(s);
            return s;
          }};
}

}  // namespace doctor::test
