// Which file a command name stands for.
#pragma once

#include <string>

#include "base/result.h"

namespace phalanx::os {

// The file that execvp would run for `name` with this PATH and working directory, checked to be executable.
// For a script, its interpreter (first line) is checked to exist too. Error kUnfit says what is missing.
// bad_first_line: set to true if what is missing is that interpreter.
base::Result<std::string> find_program(const std::string& name, const std::string& path_variable, const std::string& directory,
                                       bool* bad_first_line = nullptr);

}  // namespace phalanx::os
