// Where a rank computes.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "base/result.h"
#include "engine/comm/env.h"

namespace phalanx::engine::train {

// wanted: "cpu", "cuda", or "auto": a GPU if there is one for each rank of this host and LOCAL_RANK says which. The GPU is that of
// LOCAL_RANK. Errors: kUnfit: there is no such GPU, or no NCCL for several ranks; kConfig: LOCAL_RANK is not set.
base::Result<at::Device> choose_device(const std::string& wanted, const comm::RankEnv& env);

}  // namespace phalanx::engine::train
