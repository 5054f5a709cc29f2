// A small plain model for the tests of parallel/: parts in a list, a tied weight, a parameter that is used only when asked, a buffer.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>

#include "engine/model/layers.h"

namespace phalanx::net {

struct NetImpl : torch::nn::Module {
  explicit NetImpl(int64_t width = 24, int64_t depth = 3);
  void init(uint64_t seed);
  // tokens [rows, time] -> the sum over rows of a loss, so that losses of parts of a batch add up to that of the whole.
  at::Tensor loss(const at::Tensor& tokens, bool use_spare = false);

  engine::model::Embedding embed{nullptr};
  torch::nn::ModuleList layers{nullptr};
  engine::model::LayerNorm norm{nullptr};
  at::Tensor spare;  // [width]
  at::Tensor seen;   // buffer, [1]: how many rows this rank has seen
};
TORCH_MODULE(Net);

at::Tensor tokens(int64_t rows, int64_t step);  // the batch of a step: rows that differ, values 0..15

}  // namespace phalanx::net
