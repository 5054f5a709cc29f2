#include "cases.h"

namespace doctor::test {

std::vector<Case> speed_host_cases();

std::vector<Case> speed_cases() { return speed_host_cases(); }

}  // namespace doctor::test
