#include "cases.h"

namespace doctor::test {

std::vector<Case> visibility_cases() { return {}; }

}  // namespace doctor::test
