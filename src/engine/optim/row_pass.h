// One pass over a run of a row on CPU, in blocks that stay in the cache: gradients are widened into a block, the optimizer's loop runs
// over it, and the new parameters are rounded into the compute copy while they are still at hand.
#pragma once

#include <functional>

#include "engine/optim/row.h"

namespace phalanx::engine::optim {

// Elements [begin, end) of the row; `grads` are theirs.
struct Block {
  float* params;
  const float* grads;
  int64_t begin, n;
};

// Calls `loop` for every block of run, on torch's threads.
void pass_over(const Row& row, const Run& run, const std::function<void(const Block&)>& loop);

}  // namespace phalanx::engine::optim
