// `phalanx-train --check-data` with a LLaMA-Factory YAML: everything that would be read before the first step, without a step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace phalanx::engine::finetune {

// The arguments behind --check-data. Nothing if they name no recipe. Reads the model's configuration and the headers of its weights,
// tokenizes all data, and prints what there is: to stdout, with --json as JSON. Errors as those of the run itself.
std::optional<base::Result<int>> check_data(const std::vector<std::string>& arguments);

}  // namespace phalanx::engine::finetune
