// One rank from its environment to its exit code.
#pragma once

#include "base/result.h"
#include "engine/comm/env.h"
#include "engine/train/config.h"

namespace phalanx::engine::train {

// 0, or 128 + the signal that stopped the run behind a step and a saved checkpoint (143 for SIGTERM, 130 for SIGINT).
// Exceptions of torch end here and become an Error (kJobFailed).
base::Result<int> run_rank(const Config& config, const comm::RankEnv& env);

}  // namespace phalanx::engine::train
