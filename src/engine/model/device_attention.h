// Causal attention by libtorch's own operator, which has kernels for GPUs that never hold the scores. blocked_attention.h is the same for
// CPUs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "engine/model/padding.h"

namespace phalanx::engine::model {

// Whether attention on this tensor's device goes this way: on GPUs, from libtorch 2.5 on.
bool attends_by_operator(const at::Tensor& x);

// qkv [batch, time, 3·width] as fused_causal_attention has it -> [batch, time, width].
at::Tensor operator_causal_attention(const at::Tensor& qkv, int64_t heads);

// q [rows, heads, head], k and v [rows, kv heads, head] -> [rows, heads · head]. Scores are multiplied by `scale`.
at::Tensor operator_grouped_attention(const Padding& padding, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale);

}  // namespace phalanx::engine::model
