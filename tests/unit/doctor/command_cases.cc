#include "cases.h"

namespace doctor::test {

std::vector<Case> command_cases() { return {}; }

}  // namespace doctor::test
