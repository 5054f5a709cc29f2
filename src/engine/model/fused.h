// Layers as one pass over memory each, on CPU (the head's loss: on GPUs too), with the derivatives made by hand. Each has a plain form of
// at:: operators beside it (layers.cc, gpt.cc), which other devices use and which tests hold these against. docs/design/kernels.md says
// what each one saves.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "engine/model/blocked_attention.h"

namespace phalanx::engine::model {

// Whether the functions below can take this: on CPU, contiguous, not empty, fp32 or bf16, under autocast to bf16 or none.
bool can_fuse(const at::Tensor& x);

// gelu(x). Takes x's memory for the derivative: x must be a fresh result that nothing else reads.
at::Tensor fused_gelu(const at::Tensor& x);

// qkv [batch, time, 3·width], in each row all heads' queries, then keys, then values -> [batch, time, width]. Position i sees 0..i.
// Keeps no probabilities: backward makes them again from one number per row and head.
at::Tensor fused_causal_attention(const at::Tensor& qkv, int64_t heads);

// The same for sequences of any lengths that lie end to end, for heads in groups, windows and rotary positions: q, k and v as in
// AttentionInput, all contiguous and of one type -> [rows, heads · head].
at::Tensor fused_grouped_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& shape);

// x / sqrt(mean(x²) + epsilon) · (weight + offset) over the last dimension; both fp32.
at::Tensor fused_rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon, double offset = 0);

// act(gate) · up, of one shape and type. Takes both's memory for the derivatives: they must be fresh results that nothing else reads.
enum class Gate { kSilu, kGeluTanh };
at::Tensor fused_gated(const at::Tensor& gate, const at::Tensor& up, Gate act = Gate::kSilu);

// Sum over the tokens with a target (not ignore) of -log softmax(x · weightᵀ)[target], nats; fp32 scalar. x [tokens, width],
// weight [classes, width], targets [tokens] int64 in [0, classes) or `ignore`: others throw (on a GPU they stop the program). Never
// holds the logits of more than loss_rows(classes) tokens, on a GPU of 2^27 logits or 16,384 tokens: gradients are made along with the loss
// when they will be wanted. Under autocast the products are in bf16. `cap`: logits become cap · tanh(logit / cap) before the softmax; 0:
// they stay.
int64_t loss_rows(int64_t classes);
// On CPU where can_fuse, and on GPUs, there without fp16: derivatives are made before a loss is scaled up.
bool can_fuse_head(const at::Tensor& x);
at::Tensor fused_head_loss(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets, int64_t ignore, double cap = 0);

}  // namespace phalanx::engine::model
