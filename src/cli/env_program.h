// What `phalanx env` passes on to phalanx-env.
#pragma once

#include <string>
#include <vector>

#include "cli/flags/command_line.h"

namespace phalanx::cli {

// The flags, each as --NAME or --NAME=VALUE, "--", and the operands: as envcli/request.h reads them.
std::vector<std::string> env_program_arguments(const Invocation& invocation);

}  // namespace phalanx::cli
