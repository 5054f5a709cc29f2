// In which numbers a model computes.
#pragma once

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "engine/train/config.h"

namespace phalanx::engine::train {

struct Precision {
  at::ScalarType weights = at::kFloat;   // of the module's parameters; fp32 masters stand behind shorter ones
  at::ScalarType autocast = at::kFloat;  // operators that gain from it compute in this dtype; kFloat: none do
  bool loss_scaling = false;
};

// Error (kConfig): what this device cannot compute in.
base::Result<Precision> precision_of(const Config& config, at::Device device);

}  // namespace phalanx::engine::train
