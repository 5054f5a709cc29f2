// A tensor of the host on the device that computes.
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx::engine {

// On a GPU by way of pinned memory, so that neither the host nor the GPU's earlier work is waited for. On CPU: itself.
inline at::Tensor to_device(const at::Tensor& value, at::Device device) {
  return device.is_cuda() && value.is_cpu() ? value.pin_memory().to(device, value.scalar_type(), /*non_blocking=*/true) : value.to(device);
}

}  // namespace phalanx::engine
