#include "cases.h"

namespace phalanx::doctor::test {

std::vector<Case> speed_host_cases();

std::vector<Case> speed_cases() {
  std::vector<Case> all = speed_gpu_cases();
  for (Case& c : speed_host_cases()) all.push_back(std::move(c));
  return all;
}

}  // namespace phalanx::doctor::test
