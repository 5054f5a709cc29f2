#include "cases.h"

namespace doctor::test {

std::vector<Case> speed_cases() { return speed_gpu_cases(); }

}  // namespace doctor::test
