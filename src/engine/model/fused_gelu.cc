#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <torch/csrc/autograd/custom_function.h>

#include "engine/autocast.h"
#include "engine/model/fused.h"
#include "engine/model/loops.h"

namespace phalanx::engine::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Gelu : torch::autograd::Function<Gelu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    at::Tensor y = at::empty_like(x), slope = x.detach();
    at::parallel_for(0, x.numel(), 1 << 15, [&](int64_t begin, int64_t end) {
      if (x.scalar_type() == at::kFloat) gelu_and_slope(slope.data_ptr<float>() + begin, y.data_ptr<float>() + begin, end - begin);
      else gelu_and_slope(static_cast<uint16_t*>(slope.data_ptr()) + begin, static_cast<uint16_t*>(y.data_ptr()) + begin, end - begin);
    });
    context->saved_data["slope"] = slope;
    return y;
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    return {at::mul(grads[0], context->saved_data["slope"].toTensor())};
  }
};

}  // namespace

bool can_fuse(const at::Tensor& x) {
  if (!x.is_cpu() || !x.is_contiguous() || x.numel() == 0) return false;
  const AutocastState autocast = autocast_of(x.device());
  if (autocast.on && autocast.type != at::kBFloat16) return false;
  return x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16;
}

at::Tensor fused_gelu(const at::Tensor& x) { return Gelu::apply(x); }

}  // namespace phalanx::engine::model
