// What the user chooses of data parallelism.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/optim/row.h"

namespace phalanx::engine::parallel {

// What the ranks share out instead of repeating it: ZeRO's stages (Rajbhandari et al., arXiv 1910.02054).
enum class Stage {
  kDdp = 0,    // nothing
  kZero1 = 1,  // the optimizer's states and master weights
  kZero2 = 2,  // and the gradients
  kZero3 = 3,  // and the parameters, gathered while they are in use
};

enum class Reduce { kMean, kSum };  // what the ranks' gradients become

struct Options {
  Stage stage = Stage::kDdp;
  Reduce reduce = Reduce::kMean;

  // Parameters are laid end to end in buckets of about this size, in the order in which backward finishes them. The first one is small,
  // so that communication begins early in backward. (Stage 3 takes a module's own parts instead.)
  int64_t first_bucket_bytes = 1 << 20;
  int64_t bucket_bytes = 25 << 20;

  // One copy of the parameters for all ranks of a host, where the group can have that; then the optimizer's work is shared out too, as
  // in stage 1. Nothing but step() may write the parameters, and a rank's .grad() is the sum only in its own slice. Not for stage 3.
  bool share_parameters = false;

  // The parameters' dtype in forward and backward: fp32, or bf16/fp16 with fp32 master weights kept in the optimizer's rows.
  at::ScalarType compute = at::kFloat;
  at::ScalarType gradients = at::kFloat;  // in which gradients are summed over ranks and micro-batches

  // Reduce each micro-batch by itself in every stage, as stages 2 and 3 have to. Then all stages add in the same order, and give the
  // same parameters bit for bit.
  bool deterministic = false;

  // A parameter inside and outside of activation checkpointing, or in two checkpointed parts, gets its gradient in two parts. Stages
  // 0 and 1 find out in the first backward; 2 and 3 keep all gradients of the first backward if this is set, and refuse if it is not.
  bool repeated_gradients = false;

  // Stage 3: parameters of fewer elements stay whole on every rank (their optimizer states do not); units in use at a time; gather the
  // next unit, as the last step's order tells, while the present one works.
  int64_t persistent_elements = 100'000;
  int live_units = 2;
  bool prefetch = true;

  // After each step all ranks take rank 0's buffers (running means of batch normalisation).
  bool broadcast_buffers = true;

  // Keep master weights and optimizer states in host memory while the model is on a GPU; the optimizer then runs on the host's cores.
  bool offload = false;

  // Parameter groups, and which one a parameter belongs to; empty: one group for all.
  std::vector<optim::Group> groups = {};
  std::function<int(std::string_view name, const at::Tensor& value)> group_of = {};
};

std::string_view name_of(Stage stage);  // "ddp", "zero1", …

}  // namespace phalanx::engine::parallel
