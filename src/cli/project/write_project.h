// A first project file, made of options that were typed. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/language.h"
#include "cli/flags/command_line.h"

namespace phalanx::cli {

struct WrittenProject {
  std::string text;
  std::vector<std::string> secrets;  // variables whose value was left out: it is to come from the environment
};

// The options of the invocation that a project file can hold, one key each, then examples as comments. parse_project_file reads it back to
// the same values, except for secrets (logs::keeps_secret), which are written without their value.
WrittenProject project_text(const Invocation& invocation, base::Language language);

}  // namespace phalanx::cli
