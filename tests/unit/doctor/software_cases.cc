#include "cases.h"

namespace doctor::test {

std::vector<Case> software_cases() { return {}; }

}  // namespace doctor::test
