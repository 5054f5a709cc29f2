// Attention in blocks of queries. A block's scores reach only to its last query's position, so the half above the diagonal is never
// computed, and they stay in the cache between the two products. As in FlashAttention (arXiv 2205.14135) backward makes the
// probabilities again, from the logarithm of each row's sum; rows are short enough here for a softmax in one go.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/model/fused.h"
#include "engine/model/gemm.h"
#include "engine/model/loops.h"

namespace phalanx::engine::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kBlock = 64;  // queries; measured against 32, 128 and 256 (docs/design/kernels.md)

struct Shape {
  int64_t batch, time, width, heads, head;
  float scale;
  explicit Shape(const at::Tensor& qkv, int64_t head_count)
      : batch(qkv.size(0)),
        time(qkv.size(1)),
        width(qkv.size(2) / 3),
        heads(head_count),
        head(width / head_count),
        scale(static_cast<float>(1 / std::sqrt(static_cast<double>(head)))) {}
  int64_t per_head() const { return time * head; }
};

// One head's [time, head] columns as fp32: where they lie, or widened into a buffer.
class Columns {
 public:
  Columns(const at::Tensor& from, int64_t sequence, int64_t column, const Shape& shape, bool fill = true)
      : shape_(shape), outer_(from.size(2)) {
    const int64_t offset = sequence * shape.time * outer_ + column;
    if (from.scalar_type() == at::kFloat) {
      data = from.data_ptr<float>() + offset;
      stride = outer_;
      return;
    }
    shorts_ = static_cast<uint16_t*>(from.data_ptr()) + offset;
    buffer_.resize(static_cast<size_t>(shape.per_head()));
    data = buffer_.data();
    stride = shape.head;
    if (fill)
      for (int64_t row = 0; row < shape.time; ++row) widen(shorts_ + row * outer_, data + row * stride, shape.head);
  }
  // What was written into the buffer goes where the tensor is.
  void store() {
    if (shorts_)
      for (int64_t row = 0; row < shape_.time; ++row) narrow(data + row * stride, shorts_ + row * outer_, shape_.head);
  }
  Matrix from(int64_t row, bool transposed = false) const { return {data + row * stride, stride, transposed}; }
  float* row(int64_t index) { return data + index * stride; }

  float* data;
  int64_t stride;

 private:
  const Shape& shape_;
  int64_t outer_;
  uint16_t* shorts_ = nullptr;
  std::vector<float> buffer_;
};

void forward_of_head(const Shape& s, int64_t sequence, int64_t head, const at::Tensor& qkv, const at::Tensor& out, float* log_sums) {
  const int64_t column = head * s.head;
  Columns q(qkv, sequence, column, s), k(qkv, sequence, s.width + column, s), v(qkv, sequence, 2 * s.width + column, s);
  Columns o(out, sequence, column, s, /*fill=*/false);
  std::vector<float> scores(static_cast<size_t>(kBlock * s.time));
  for (int64_t first = 0; first < s.time; first += kBlock) {
    const int64_t rows = std::min(kBlock, s.time - first), keys = first + rows;
    gemm(rows, keys, s.head, s.scale, q.from(first), k.from(0, true), 0, scores.data(), keys);
    float sums[kBlock];
    for (int64_t i = 0; i < rows; ++i) {
      float* row = scores.data() + i * keys;
      const int64_t seen = first + i + 1;
      float most = 0;
      sums[i] = exp_of_row(row, seen, most);
      std::fill(row + seen, row + keys, 0.0f);
      log_sums[first + i] = most + std::log(sums[i]);
    }
    gemm(rows, s.head, keys, 1, {scores.data(), keys}, v.from(0), 0, o.row(first), o.stride);
    for (int64_t i = 0; i < rows; ++i) scale_row(o.row(first + i), s.head, 1 / sums[i]);
  }
  o.store();
}

struct Grads {
  const at::Tensor &out, &qkv;
};

void backward_of_head(const Shape& s, int64_t sequence, int64_t head, const at::Tensor& qkv, const at::Tensor& out, const float* log_sums,
                      const Grads& grads) {
  const int64_t column = head * s.head;
  Columns q(qkv, sequence, column, s), k(qkv, sequence, s.width + column, s), v(qkv, sequence, 2 * s.width + column, s);
  Columns o(out, sequence, column, s), d_o(grads.out, sequence, column, s);
  Columns d_q(grads.qkv, sequence, column, s, false), d_k(grads.qkv, sequence, s.width + column, s, false);
  Columns d_v(grads.qkv, sequence, 2 * s.width + column, s, false);
  std::vector<float> scores(static_cast<size_t>(kBlock * s.time)), d_scores(scores.size());
  // From the last block, which sees all keys and so writes all rows of d_k and d_v; the others add to them.
  const int64_t last = (s.time - 1) / kBlock * kBlock;
  for (int64_t first = last; first >= 0; first -= kBlock) {
    const int64_t rows = std::min(kBlock, s.time - first), keys = first + rows;
    const float onto = first == last ? 0 : 1;
    gemm(rows, keys, s.head, s.scale, q.from(first), k.from(0, true), 0, scores.data(), keys);
    gemm(rows, keys, s.head, 1, d_o.from(first), v.from(0, true), 0, d_scores.data(), keys);
    for (int64_t i = 0; i < rows; ++i) {
      float *row = scores.data() + i * keys, *d_row = d_scores.data() + i * keys;
      const int64_t seen = first + i + 1;
      probabilities_of_row(row, seen, log_sums[first + i]);
      softmax_backward_of_row(row, d_row, seen, dot(d_o.row(first + i), o.row(first + i), s.head), s.scale);
      std::fill(row + seen, row + keys, 0.0f);
      std::fill(d_row + seen, d_row + keys, 0.0f);
    }
    gemm(keys, s.head, rows, 1, {scores.data(), keys, true}, d_o.from(first), onto, d_v.data, d_v.stride);
    gemm(keys, s.head, rows, 1, {d_scores.data(), keys, true}, q.from(first), onto, d_k.data, d_k.stride);
    gemm(rows, s.head, keys, 1, {d_scores.data(), keys}, k.from(0), 0, d_q.row(first), d_q.stride);
  }
  d_q.store();
  d_k.store();
  d_v.store();
}

template <class Body>
void for_each_head(const Shape& s, const Body& body) {
  at::parallel_for(0, s.batch * s.heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i / s.heads, i % s.heads, i * s.time);
  });
}

struct Attention : torch::autograd::Function<Attention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv, int64_t heads) {
    const Shape shape(qkv, heads);
    at::Tensor out = at::empty({shape.batch, shape.time, shape.width}, qkv.options());
    at::Tensor log_sums = at::empty({shape.batch, heads, shape.time}, qkv.options().dtype(at::kFloat));
    for_each_head(shape, [&](int64_t sequence, int64_t head, int64_t offset) {
      forward_of_head(shape, sequence, head, qkv, out, log_sums.data_ptr<float>() + offset);
    });
    context->saved_data["heads"] = heads;
    context->saved_data["log_sums"] = log_sums;
    context->save_for_backward({qkv, out});
    return out;
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const int64_t heads = context->saved_data["heads"].toInt();
    const Shape shape(saved[0], heads);
    const at::Tensor log_sums = context->saved_data["log_sums"].toTensor(), d_out = grads[0].contiguous();
    at::Tensor d_qkv = at::empty_like(saved[0]);
    for_each_head(shape, [&](int64_t sequence, int64_t head, int64_t offset) {
      backward_of_head(shape, sequence, head, saved[0], saved[1], log_sums.data_ptr<float>() + offset, {d_out, d_qkv});
    });
    return {d_qkv, at::Tensor()};
  }
};

}  // namespace

at::Tensor fused_causal_attention(const at::Tensor& qkv, int64_t heads) { return Attention::apply(qkv, heads); }

}  // namespace phalanx::engine::model
