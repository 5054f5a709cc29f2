#include "engine/model/layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

#include "engine/model/device_attention.h"
#include "engine/model/fused.h"

namespace phalanx::engine::model {

LinearImpl::LinearImpl(int64_t in, int64_t out)
    : weight(register_parameter("weight", at::empty({out, in}))), bias(register_parameter("bias", at::zeros({out}))) {}

at::Tensor LinearImpl::forward(const at::Tensor& x) { return at::linear(x, weight, bias); }

LayerNormImpl::LayerNormImpl(int64_t width)
    : weight(register_parameter("weight", at::ones({width}))), bias(register_parameter("bias", at::zeros({width}))) {}

at::Tensor LayerNormImpl::forward(const at::Tensor& x) { return at::layer_norm(x, {x.size(-1)}, weight, bias, 1e-5); }

EmbeddingImpl::EmbeddingImpl(int64_t rows, int64_t width) : weight(register_parameter("weight", at::empty({rows, width}))) {}

at::Tensor EmbeddingImpl::forward(const at::Tensor& ids) { return at::embedding(weight, ids); }

CausalAttentionImpl::CausalAttentionImpl(int64_t width, int64_t head_count, Kernels which)
    : heads(head_count),
      kernels(which),
      qkv(register_module("qkv", Linear(width, 3 * width))),
      out(register_module("out", Linear(width, width))) {}

at::Tensor CausalAttentionImpl::forward(const at::Tensor& x) {
  at::Tensor all = qkv(x);
  if (kernels == Kernels::kFused && attends_by_operator(all)) return out(operator_causal_attention(all, heads));
  return out(kernels == Kernels::kFused && can_fuse(all) ? fused_causal_attention(all, heads) : plain(all));
}

at::Tensor CausalAttentionImpl::plain(const at::Tensor& all) {
  const int64_t batch = all.size(0), time = all.size(1), width = all.size(2) / 3, head = width / heads;
  if (!mask_.defined() || mask_.size(0) < time || mask_.device() != all.device())
    mask_ = at::full({time, time}, -std::numeric_limits<float>::infinity(), all.options().dtype(at::kFloat)).triu_(1);
  // [batch, time, 3·width] -> three of [batch, heads, time, head]
  at::Tensor parts = all.view({batch, time, 3, heads, head}).permute({2, 0, 3, 1, 4});
  at::Tensor query = parts[0] * (1 / std::sqrt(static_cast<double>(head)));
  at::Tensor scores = at::matmul(query, parts[1].transpose(-2, -1));
  scores.add_(mask_.narrow(0, 0, time).narrow(1, 0, time));
  at::Tensor seen = at::matmul(at::softmax(scores, -1), parts[2]);
  return seen.transpose(1, 2).reshape({batch, time, width});
}

BlockImpl::BlockImpl(int64_t width, int64_t heads, double dropout_share, Kernels which)
    : dropout(dropout_share),
      kernels(which),
      norm1(register_module("norm1", LayerNorm(width))),
      attention(register_module("attention", CausalAttention(width, heads, which))),
      norm2(register_module("norm2", LayerNorm(width))),
      up(register_module("up", Linear(width, 4 * width))),
      down(register_module("down", Linear(4 * width, width))) {}

at::Tensor BlockImpl::forward(const at::Tensor& x) {
  auto dropped = [&](const at::Tensor& branch) { return dropout > 0 ? at::dropout(branch, dropout, is_training()) : branch; };
  at::Tensor middle = x + dropped(attention(norm1(x)));
  at::Tensor wide = up(norm2(middle));
  return middle + dropped(down(kernels == Kernels::kFused && can_fuse(wide) ? fused_gelu(wide) : at::gelu(wide)));
}

}  // namespace phalanx::engine::model
