#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "engine/model/fused.h"
#include "engine/model/loops.h"

namespace phalanx::engine::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kRows = 64;  // that one thread takes at least

struct RmsNormNode : torch::autograd::Function<RmsNormNode> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, double epsilon, double offset) {
    const int64_t width = x.size(-1), rows = x.numel() / width;
    // A copy, by an operator: what a sharded model has not gathered has no address (docs/design/kernels.md).
    const at::Tensor scale = offset == 0 ? weight.clone() : weight + offset;
    at::Tensor y = at::empty_like(x), roots = at::empty({rows}, x.options());
    at::parallel_for(0, rows, kRows, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        roots.data_ptr<float>()[row] = rms_norm_row(x.data_ptr<float>() + row * width, scale.data_ptr<float>(),
                                                    y.data_ptr<float>() + row * width, width, static_cast<float>(epsilon));
    });
    context->saved_data["roots"] = roots;
    context->saved_data["scale"] = scale;
    context->saved_data["learns"] = weight.requires_grad();
    context->save_for_backward({x});
    return y;
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const at::Tensor x = context->get_saved_variables()[0], d_y = grads[0].contiguous();
    const at::Tensor roots = context->saved_data["roots"].toTensor(), scale = context->saved_data["scale"].toTensor();
    const int64_t width = x.size(-1), rows = x.numel() / width, parts = (rows + kRows - 1) / kRows;
    at::Tensor d_x = at::empty_like(x), d_weight;
    // Sums in the order of the rows, whatever the number of threads: a part of rows each, then the parts.
    if (context->saved_data["learns"].toBool()) d_weight = at::zeros({parts, width}, x.options());
    at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin * kRows; row < std::min(end * kRows, rows); ++row)
        rms_norm_backward_row(x.data_ptr<float>() + row * width, scale.data_ptr<float>(), d_y.data_ptr<float>() + row * width,
                              roots.data_ptr<float>()[row], d_x.data_ptr<float>() + row * width,
                              d_weight.defined() ? d_weight.data_ptr<float>() + row / kRows * width : nullptr, width);
    });
    return {d_x, d_weight.defined() ? d_weight.sum(0) : d_weight, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor fused_rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon, double offset) {
  return RmsNormNode::apply(x, weight, epsilon, offset);
}

}  // namespace phalanx::engine::model
