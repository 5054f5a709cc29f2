// The `data` section of a config as the options of engine/data.
#pragma once

#include "engine/data/open_set.h"
#include "engine/data/step_loader.h"
#include "engine/train/config.h"

namespace phalanx::engine::train {

data::SetOptions set_options(const Config& config);
// Of training on one rank. Error (kConfig): the batch cannot be shared (data/batch_share.h).
base::Result<data::LoaderOptions> loader_options(const Config& config, int rank, int world);

}  // namespace phalanx::engine::train
