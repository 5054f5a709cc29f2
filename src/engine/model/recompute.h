// Activation checkpointing: a block's activations are not kept but made again in backward, for a third more work and a block's memory
// instead of all blocks'.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace phalanx::engine::model {

// block(input), where backward runs block again on the kept input, under the random numbers and the autocast of the first time, so that
// the result is bit for bit that of block(input) itself. Parameters that block uses get their gradients in that second run, inside
// backward (reentrant: torch.utils.checkpoint with use_reentrant=True). `random`: block draws random numbers (dropout).
at::Tensor recomputed(std::function<at::Tensor(const at::Tensor&)> block, const at::Tensor& input, bool random);

// The state of the device's default generator of random numbers, as torch.get_rng_state() has it, and back. Part of a resumed run.
at::Tensor rng_state(at::Device device);
void set_rng_state(at::Device device, const at::Tensor& state);

}  // namespace phalanx::engine::model
