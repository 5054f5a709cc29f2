#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <torch/csrc/autograd/custom_function.h>

#include "engine/model/fused.h"
#include "engine/model/loops.h"

namespace phalanx::engine::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct GatedNode : torch::autograd::Function<GatedNode> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate, const at::Tensor& up, bool gelu) {
    at::Tensor y = at::empty_like(gate), gate_slope = gate.detach(), up_slope = up.detach();
    at::parallel_for(0, gate.numel(), 1 << 15, [&](int64_t begin, int64_t end) {
      const auto part = [&]<class T>(T*) {
        const auto at = [&](const at::Tensor& of) { return static_cast<T*>(of.data_ptr()) + begin; };
        if (gelu) gelu_gated_and_slopes(at(gate_slope), at(up_slope), at(y), end - begin);
        else gated_and_slopes(at(gate_slope), at(up_slope), at(y), end - begin);
      };
      if (gate.scalar_type() == at::kFloat) part(static_cast<float*>(nullptr));
      else part(static_cast<uint16_t*>(nullptr));
    });
    context->saved_data["gate"] = gate_slope;
    context->saved_data["up"] = up_slope;
    return y;
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto by = [&](const char* name) { return at::mul(grads[0], context->saved_data[name].toTensor()); };
    return {by("gate"), by("up"), at::Tensor()};
  }
};

}  // namespace

at::Tensor fused_gated(const at::Tensor& gate, const at::Tensor& up, Gate act) {
  return GatedNode::apply(gate, up, act == Gate::kGeluTanh);
}

}  // namespace phalanx::engine::model
