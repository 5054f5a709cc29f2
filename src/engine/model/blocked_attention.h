// Attention in blocks of queries, on CPU, without torch's graph. A block's scores reach only to its last query's position, so the half
// above the diagonal is never computed, and they stay in the cache between the two products. As in FlashAttention (arXiv 2205.14135)
// backward makes the probabilities again, from the logarithm of each row's sum; rows are short enough here for a softmax in one go.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace phalanx::engine::model {

struct AttentionShape {
  std::vector<int64_t> starts;  // sequences lie end to end: i is rows starts[i] to starts[i + 1]; the last is the number of rows
  int64_t heads = 0;            // of queries
  int64_t kv_heads = 0;         // each is seen by heads / kv_heads heads of queries, one after another
  int64_t head = 0;             // columns of a head
  int64_t window = 0;           // position p sees p - window < j <= p; 0: all up to p
  // fp32 [longest sequence, half], or [rows, half] if each row has its own, contiguous: the first 2 · half columns of queries and keys are
  // rotated; undefined: they are not.
  at::Tensor cos, sin;
  double scale = 0;  // of scores; 0: 1 / sqrt(head)
  double cap = 0;    // scores become cap · tanh(score / cap) before the softmax; 0: they stay

  int64_t rows() const { return starts.back(); }
  int64_t group() const { return heads / kv_heads; }
};

// q [rows, heads · head], k and v [rows, kv_heads · head], fp32 or bf16; a row's columns lie side by side, rows may be further apart.
struct AttentionInput {
  at::Tensor q, k, v;
};

// Writes out [rows, heads · head] and log_sums, fp32 [rows, heads].
void attention_forward(const AttentionShape& shape, const AttentionInput& in, const at::Tensor& out, const at::Tensor& log_sums);
// Writes the gradients of q, k and v, of the same shapes.
void attention_backward(const AttentionShape& shape, const AttentionInput& in, const at::Tensor& out, const at::Tensor& log_sums,
                        const at::Tensor& d_out, const AttentionInput& gradients);

}  // namespace phalanx::engine::model
