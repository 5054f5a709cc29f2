// Training state to a checkpoint and back. In the files every tensor stands under its parameter's name, whatever buckets it
// lay in, so a checkpoint does not know how many ranks or buckets wrote it.
#pragma once

#include <string>

#include "engine/checkpoint/checkpoint.h"
#include "engine/optim/optimizer.h"
#include "engine/parallel/flat.h"

namespace engine::train {

// The tensors are views: save it before the next step. The optimizer has one row per bucket; its tensors
// are named "exp_avg.<parameter>", "exp_avg_sq.<parameter>".
checkpoint::Snapshot snapshot(const std::vector<parallel::Bucket>& buckets, const optim::Optimizer& optimizer, base::Json about);

// Error (kConfig) when the checkpoint's tensors are not exactly those of this model: the first difference is named.
base::Status restore(const checkpoint::Loaded& from, std::vector<parallel::Bucket>& buckets, optim::Optimizer& optimizer);

}  // namespace engine::train
