// What a checkpoint is made of: runs of elements of named tensors. A rank that holds a shard of a tensor gives the run it holds; the
// ranks together give every element of every tensor exactly once. So a checkpoint knows nothing of how many ranks wrote it, or of
// the stage they trained with.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx::engine::checkpoint {

struct Piece {
  std::string name;            // "model.embed.weight", "exp_avg.embed.weight": kind, dot, parameter
  std::vector<int64_t> shape;  // of the whole tensor, row-major
  int64_t begin = 0;           // first element of the flattened tensor in `data`
  at::Tensor data;             // 1-D, contiguous, the elements [begin, begin + data.numel())
};

}  // namespace phalanx::engine::checkpoint
