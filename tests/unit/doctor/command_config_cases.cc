#include "user_files.h"

namespace doctor::test {

std::vector<Case> command_config_cases() { return {}; }
std::vector<Case> command_python_cases() { return {}; }

}  // namespace doctor::test
