#include "engine/train/precision.h"

#include <ATen/autocast_mode.h>
#include <fmt/format.h>

#include "engine/comm/compat.h"

namespace engine::train {
namespace {

// Up to 2.3 one function per device, from 2.4 on one for all.
void switch_autocast(at::Device device, bool on, at::ScalarType dtype) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  at::autocast::set_autocast_enabled(device.type(), on);
  if (on) at::autocast::set_autocast_dtype(device.type(), dtype);
#else
  if (device.is_cuda()) {
    at::autocast::set_enabled(on);
    if (on) at::autocast::set_autocast_gpu_dtype(dtype);
  } else {
    at::autocast::set_cpu_enabled(on);
    if (on) at::autocast::set_autocast_cpu_dtype(dtype);
  }
#endif
}

}  // namespace

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

Autocast::Autocast(const Precision& precision, at::Device device) : device_(device), on_(precision.autocast != at::kFloat) {
  if (!on_) return;
  switch_autocast(device_, true, precision.autocast);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!on_) return;
  // Copies of weights in the short dtype are kept until here; the next step has other weights.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  switch_autocast(device_, false, at::kFloat);
}

}  // namespace engine::train
