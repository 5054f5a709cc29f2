#include "engine/train/precision.h"

namespace phalanx::engine::train {
base::Result<Precision> precision_of(const Config& config, at::Device device) {
  const std::string& name = config.train.precision;
  Precision precision;
  if (name == "bf16") precision.autocast = at::kBFloat16;
  if (name == "bf16-weights") precision.weights = at::kBFloat16;
  if (name == "fp16") {
    if (device.is_cpu())
      return base::fail(base::ErrorKind::kConfig, "train.precision is fp16, and libtorch cannot multiply fp16 matrices on a CPU")
          .with_hint("train.precision=bf16");
    precision.autocast = at::kHalf;
  }
  precision.loss_scaling = config.train.loss_scaling == "on" || (config.train.loss_scaling == "auto" && name == "fp16");
  return precision;
}

}  // namespace phalanx::engine::train
