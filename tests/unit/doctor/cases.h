// Every row of the catalogue is held against cases: situations that must trigger it and near misses that must not.
// A group's cases stand in <group>_cases.cc; catalogue_test.cc runs them all and fails for a row without both kinds.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/examine.h"
#include "situations.h"

namespace phalanx::doctor::test {

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
std::vector<Case> container_cases();
std::vector<Case> command_cases();
std::vector<Case> data_cases();
std::vector<Case> speed_cases();
std::vector<Case> speed_gpu_cases();  // of speed_cases()

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

}  // namespace phalanx::doctor::test
