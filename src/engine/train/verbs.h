// What phalanx-train does besides training: work on checkpoints, without ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace phalanx::engine::train {

// The exit code if the first argument is a verb, nullopt if it is not.
std::optional<base::Result<int>> run_verb(const std::vector<std::string>& arguments);
std::string help_of_verbs();  // lines for --help

}  // namespace phalanx::engine::train
