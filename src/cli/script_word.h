// What a torchrun user types first: `phalanx run train.py`, where torchrun adds the interpreter and phalanx does not.
#pragma once

#include "base/result.h"
#include "cli/flags/command_line.h"

namespace phalanx::cli {

// Error kUsage, with the whole command line to type instead: the command's first word is a script in `folder` that no host could start as
// a program (train.py without a path), or a whole command in quotes ("python train.py"). path: as in PATH.
base::Status check_first_word(const Invocation& invocation, const std::string& folder, const std::string& path);

// With --sync, `folder` is copied to the hosts: a script that an interpreter is to start and that is not here will not be there. Error
// kUsage, with the name that was probably meant.
base::Status check_copied_script(const Invocation& invocation, const std::string& folder);

}  // namespace phalanx::cli
