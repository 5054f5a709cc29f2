// What of a host's facts is kept in the run directory (docs/formats/run-directory.md, facts/<n>.json). Pure.
#pragma once

#include <string>

#include "base/result.h"

namespace phalanx::cli {

// `probed`: the JSON of an agent's answer. Kept without the value of any variable and without the text of any file: of variables the names
// remain (software.environment_names, command.launches[].variable_names). What the checks need of the values stays in memory. Error:
// they are no facts.
base::Result<std::string> facts_for_file(const std::string& probed);

}  // namespace phalanx::cli
