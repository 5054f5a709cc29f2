// In which numbers a model computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "base/result.h"
#include "engine/train/config.h"

namespace engine::train {

struct Precision {
  at::ScalarType weights = at::kFloat;   // of the module's parameters; fp32 masters stand behind shorter ones
  at::ScalarType autocast = at::kFloat;  // operators that gain from it compute in this dtype; kFloat: none do
  bool loss_scaling = false;
};

// Error (kConfig): what this device cannot compute in.
base::Result<Precision> precision_of(const Config& config, at::Device device);

// From its making to its end, operators of this thread (and backward of what they made) follow `precision`.
class Autocast {
 public:
  Autocast(const Precision& precision, at::Device device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::Device device_;
  bool on_;
};

}  // namespace engine::train
