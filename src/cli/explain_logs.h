// `phalanx explain FILE…`: which operands are logs, and what they say.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/flags/command_line.h"

namespace phalanx::cli {

// "-", a file or folder that exists, a word with '/' in it, "latest", or the id of a run in the folder of runs.
bool names_logs(const std::string& word, const std::string& runs_folder);

// Reads all, prints the report, and returns the exit code: 0 if a cause was named, 1 if none was found.
base::Result<int> explain_logs(const std::vector<std::string>& operands, const std::string& runs_folder, bool json);

}  // namespace phalanx::cli
