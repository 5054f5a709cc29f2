#include "engine/model/layers.h"

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

namespace engine::model {

LinearImpl::LinearImpl(int64_t in, int64_t out)
    : weight(register_parameter("weight", at::empty({out, in}))), bias(register_parameter("bias", at::zeros({out}))) {}

at::Tensor LinearImpl::forward(const at::Tensor& x) { return at::linear(x, weight, bias); }

LayerNormImpl::LayerNormImpl(int64_t width)
    : weight(register_parameter("weight", at::ones({width}))), bias(register_parameter("bias", at::zeros({width}))) {}

at::Tensor LayerNormImpl::forward(const at::Tensor& x) { return at::layer_norm(x, {x.size(-1)}, weight, bias, 1e-5); }

EmbeddingImpl::EmbeddingImpl(int64_t rows, int64_t width) : weight(register_parameter("weight", at::empty({rows, width}))) {}

at::Tensor EmbeddingImpl::forward(const at::Tensor& ids) { return at::embedding(weight, ids); }

CausalAttentionImpl::CausalAttentionImpl(int64_t width, int64_t head_count, int64_t context)
    : heads(head_count),
      qkv(register_module("qkv", Linear(width, 3 * width))),
      out(register_module("out", Linear(width, width))),
      mask(at::full({context, context}, -std::numeric_limits<float>::infinity()).triu(1)) {
  register_buffer("mask", mask);
}

at::Tensor CausalAttentionImpl::forward(const at::Tensor& x) {
  const int64_t batch = x.size(0), time = x.size(1), width = x.size(2), head = width / heads;
  // [batch, time, 3·width] -> three of [batch, heads, time, head]
  at::Tensor all = qkv(x).view({batch, time, 3, heads, head}).permute({2, 0, 3, 1, 4});
  at::Tensor query = all[0] * (1 / std::sqrt(static_cast<double>(head)));
  at::Tensor key = all[1], value = all[2];
  at::Tensor scores = at::matmul(query, key.transpose(-2, -1));
  if (time == mask.size(0)) scores.add_(mask);
  else scores.add_(mask.narrow(0, 0, time).narrow(1, 0, time));
  at::Tensor seen = at::matmul(at::softmax(scores, -1), value);
  return out(seen.transpose(1, 2).reshape({batch, time, width}));
}

BlockImpl::BlockImpl(int64_t width, int64_t heads, int64_t context)
    : norm1(register_module("norm1", LayerNorm(width))),
      attention(register_module("attention", CausalAttention(width, heads, context))),
      norm2(register_module("norm2", LayerNorm(width))),
      up(register_module("up", Linear(width, 4 * width))),
      down(register_module("down", Linear(4 * width, width))) {}

at::Tensor BlockImpl::forward(const at::Tensor& x) {
  at::Tensor middle = x + attention(norm1(x));
  return middle + down(at::gelu(up(norm2(middle))));
}

}  // namespace engine::model
