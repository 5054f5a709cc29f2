// Causal attention by libtorch's own operator, which has kernels for GPUs that never hold the scores. blocked_attention.h is the same for
// CPUs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace phalanx::engine::model {

// Whether attention on this tensor's device goes this way: on GPUs, from libtorch 2.5 on.
bool attends_by_operator(const at::Tensor& x);

// qkv [batch, time, 3·width] as fused_causal_attention has it -> [batch, time, width].
at::Tensor operator_causal_attention(const at::Tensor& qkv, int64_t heads);

// Sequences that lie end to end, in groups of similar lengths, each brought to one length: behind a shorter one come rows that no row in
// front of them sees. All groups together have less than twice as many places as there are rows.
struct Padding {
  struct Group {
    int64_t sequences = 0, longest = 0;
    at::Tensor row_of_place{};  // [sequences · longest]
  };
  std::vector<Group> groups;
  at::Tensor place_of_row{};  // [rows], in the groups one after the other; it and row_of_place undefined where all have one length
  int64_t longest() const { return groups.front().longest; }
};
// Sequence i is rows starts[i] to starts[i + 1].
Padding padding_of(const std::vector<int64_t>& starts, at::Device device);

// q [rows, heads, head], k and v [rows, kv heads, head] -> [rows, heads · head]. Scores are multiplied by `scale`.
at::Tensor operator_grouped_attention(const Padding& padding, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale);

}  // namespace phalanx::engine::model
