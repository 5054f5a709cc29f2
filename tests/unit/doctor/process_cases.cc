#include "cases.h"

namespace doctor::test {

std::vector<Case> process_cases() { return {}; }

}  // namespace doctor::test
