#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "engine/model/blocked_attention.h"
#include "engine/model/fused.h"

namespace phalanx::engine::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor room_for_sums(const AttentionShape& shape, const at::Tensor& like) {
  return at::empty({shape.rows(), shape.heads}, like.options().dtype(at::kFloat));
}

AttentionShape equal_rows(int64_t batch, int64_t time, int64_t width, int64_t heads) {
  AttentionShape out;
  for (int64_t i = 0; i <= batch; ++i) out.starts.push_back(i * time);
  out.heads = out.kv_heads = heads;
  out.head = width / heads;
  return out;
}

// The three thirds of qkv's columns.
AttentionInput thirds(const at::Tensor& qkv) {
  const at::Tensor rows = qkv.flatten(0, 1);
  const int64_t width = qkv.size(2) / 3;
  return {rows.narrow(1, 0, width), rows.narrow(1, width, width), rows.narrow(1, 2 * width, width)};
}

struct CausalAttentionNode : torch::autograd::Function<CausalAttentionNode> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv, int64_t heads) {
    const int64_t batch = qkv.size(0), time = qkv.size(1), width = qkv.size(2) / 3;
    const AttentionShape shape = equal_rows(batch, time, width, heads);
    at::Tensor out = at::empty({batch, time, width}, qkv.options()), log_sums = room_for_sums(shape, qkv);
    attention_forward(shape, thirds(qkv), out.flatten(0, 1), log_sums);
    context->saved_data["heads"] = heads;
    context->saved_data["log_sums"] = log_sums;
    context->save_for_backward({qkv, out});
    return out;
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &qkv = saved[0], &out = saved[1];
    const AttentionShape shape = equal_rows(out.size(0), out.size(1), out.size(2), context->saved_data["heads"].toInt());
    at::Tensor d_qkv = at::empty_like(qkv);
    attention_backward(shape, thirds(qkv), out.flatten(0, 1), context->saved_data["log_sums"].toTensor(),
                       grads[0].contiguous().flatten(0, 1), thirds(d_qkv));
    return {d_qkv, at::Tensor()};
  }
};

struct GroupedAttentionNode : torch::autograd::Function<GroupedAttentionNode> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const AttentionShape& shape) {
    at::Tensor out = at::empty_like(q), log_sums = room_for_sums(shape, q);
    attention_forward(shape, {q, k, v}, out, log_sums);
    context->saved_data["starts"] = shape.starts;
    context->saved_data["numbers"] = std::vector<int64_t>{shape.heads, shape.kv_heads, shape.head, shape.window};
    context->saved_data["factors"] = std::vector<double>{shape.scale, shape.cap};
    context->saved_data["log_sums"] = log_sums;
    context->save_for_backward({q, k, v, out, shape.cos, shape.sin});
    return out;
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const std::vector<int64_t> numbers = context->saved_data["numbers"].toIntVector();
    const std::vector<double> factors = context->saved_data["factors"].toDoubleVector();
    const AttentionShape shape{context->saved_data["starts"].toIntVector(),
                               numbers[0],
                               numbers[1],
                               numbers[2],
                               numbers[3],
                               saved[4],
                               saved[5],
                               factors[0],
                               factors[1]};
    const AttentionInput in{saved[0], saved[1], saved[2]};
    const AttentionInput out{at::empty_like(in.q), at::empty_like(in.k), at::empty_like(in.v)};
    attention_backward(shape, in, saved[3], context->saved_data["log_sums"].toTensor(), grads[0].contiguous(), out);
    return {out.q, out.k, out.v, at::Tensor()};
  }
};

}  // namespace

at::Tensor fused_causal_attention(const at::Tensor& qkv, int64_t heads) { return CausalAttentionNode::apply(qkv, heads); }

at::Tensor fused_grouped_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& shape) {
  return GroupedAttentionNode::apply(q, k, v, shape);
}

}  // namespace phalanx::engine::model
