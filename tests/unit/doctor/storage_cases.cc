#include "cases.h"

namespace doctor::test {

std::vector<Case> storage_cases() { return {}; }

}  // namespace doctor::test
