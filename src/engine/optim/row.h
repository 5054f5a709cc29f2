// What an optimizer works on: long flat rows of parameters with their gradients. It knows nothing of modules, ranks or shards: a
// shard of the parameters of a model is a few rows, the whole model is too.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx::engine::optim {

// Parameters that are treated alike (torch: a param_group).
struct Group {
  std::string name = "default";
  double lr_scale = 1;  // times the schedule's rate
  double weight_decay = 0;
};

// Elements [begin, end) of a row belong to groups[group]. The runs of a row are in order and do not overlap; what lies in none is left
// alone. Padding between two parameters of one group may lie in their run: its values and gradients are zero, and of zeros every optimizer
// here makes zeros.
struct Run {
  int64_t begin = 0, end = 0;
  int group = 0;
};

struct Row {
  at::Tensor params;   // fp32 [n], contiguous: the master weights
  at::Tensor grads;    // [n] fp32 or bf16: only read
  at::Tensor compute;  // undefined, or bf16/fp16 [n]: receives the rounded new params in the same pass
  std::vector<Run> runs;
};

}  // namespace phalanx::engine::optim
