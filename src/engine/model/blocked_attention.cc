#include "engine/model/blocked_attention.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "engine/model/gemm.h"
#include "engine/model/loops.h"

namespace phalanx::engine::model {
namespace {

// Rows of scores at a time, of all heads of a group together; measured against 32, 128 and 256 (docs/design/kernels.md).
constexpr int64_t kBlock = 64, kFewestQueries = 16;

// What one sequence and one kv head have to do: a group's heads are rows of one matrix, [time · group, head].
struct HeadPart {
  const AttentionShape& shape;
  int64_t first;  // row of the tensors
  int64_t time;
  int64_t kv_head;
  int64_t group = shape.group(), head = shape.head;
  float scale = static_cast<float>(shape.scale > 0 ? shape.scale : 1 / std::sqrt(static_cast<double>(shape.head)));
  float cap = static_cast<float>(shape.cap);

  int64_t queries() const { return group == 1 ? kBlock : std::max(kFewestQueries, kBlock / group); }
  // Positions that the first query of a block sees from.
  int64_t from(int64_t query) const { return shape.window > 0 ? std::max<int64_t>(0, query - shape.window + 1) : 0; }
};

// How a part's columns are used: those that are written only need not be read.
struct Use {
  bool read = true;
  bool rotated = false;  // by their positions; turned back when they are stored
};

// A part's columns of a tensor as fp32 rows of `head`: where they lie, or in a buffer.
class Columns {
 public:
  Columns(const at::Tensor& tensor, const HeadPart& part, int64_t group, Use use)
      : part_(part), rotated_(use.rotated && part.shape.cos.defined()), group_(group), outer_(tensor.stride(0)) {
    const int64_t offset = part.first * outer_ + part.kv_head * group * part.head;
    const bool wide = tensor.scalar_type() == at::kFloat;
    if (wide) floats_ = tensor.data_ptr<float>() + offset;
    else shorts_ = static_cast<uint16_t*>(tensor.data_ptr()) + offset;
    if (wide && group == 1 && !rotated_) {
      data = floats_;
      stride = outer_;
      return;
    }
    buffer_.resize(static_cast<size_t>(part.time * width()));
    data = buffer_.data();
    stride = part.head;
    if (use.read) load();
  }
  // What was written into the buffer goes where the tensor is.
  void store() {
    if (buffer_.empty()) return;
    if (rotated_) rotate(-1);
    for (int64_t row = 0; row < part_.time; ++row) {
      if (shorts_) narrow(data + row * width(), shorts_ + row * outer_, width());
      else std::copy_n(data + row * width(), width(), floats_ + row * outer_);
    }
  }
  void clear() {
    for (int64_t row = 0; row < part_.time * group_; ++row) std::fill_n(data + row * stride, part_.head, 0.0f);
  }
  Matrix at(int64_t row, bool transposed = false) const { return {data + row * stride, stride, transposed}; }
  float* row(int64_t index) { return data + index * stride; }

  float* data;
  int64_t stride;

 private:
  int64_t width() const { return group_ * part_.head; }
  void load() {
    for (int64_t row = 0; row < part_.time; ++row) {
      if (shorts_) widen(shorts_ + row * outer_, data + row * width(), width());
      else std::copy_n(floats_ + row * outer_, width(), data + row * width());
    }
    if (rotated_) rotate(1);
  }
  void rotate(float sign) {
    const int64_t half = part_.shape.cos.size(1);
    const int64_t first = part_.shape.cos.size(0) == part_.shape.rows() ? part_.first * half : 0;
    const float *cos = part_.shape.cos.data_ptr<float>() + first, *sin = part_.shape.sin.data_ptr<float>() + first;
    for (int64_t row = 0; row < part_.time; ++row)
      rotate_heads(data + row * width(), group_, part_.head, half, cos + row * half, sin + row * half, sign);
  }

  const HeadPart& part_;
  bool rotated_;
  int64_t group_, outer_;
  float* floats_ = nullptr;
  uint16_t* shorts_ = nullptr;
  std::vector<float> buffer_;
};

constexpr Use kRead{}, kReadRotated{true, true}, kWritten{false, false}, kWrittenRotated{false, true};

// The block of queries first to first + count, and the keys that any of them sees: from low to low + keys.
struct QueryBlock {
  QueryBlock(const HeadPart& part, int64_t start)
      : first(start), count(std::min(part.queries(), part.time - start)), low(part.from(start)), keys(start + count - low) {}
  int64_t first, count, low, keys;
  int64_t rows(const HeadPart& part) const { return count * part.group; }
};

// What row i of a block's scores sees, as columns of them; sets the others to 0.
struct Seen {
  int64_t begin, count;
};
Seen seen_by(const HeadPart& part, const QueryBlock& block, int64_t i) {
  const int64_t query = block.first + i / part.group, begin = part.from(query) - block.low;
  return {begin, query + 1 - block.low - begin};
}
void clear_unseen(float* row, const Seen& seen, int64_t keys) {
  std::fill(row, row + seen.begin, 0.0f);
  std::fill(row + seen.begin + seen.count, row + keys, 0.0f);
}

void forward_of(const HeadPart& part, const AttentionInput& in, const at::Tensor& out, float* log_sums) {
  Columns q(in.q, part, part.group, kReadRotated), k(in.k, part, 1, kReadRotated), v(in.v, part, 1, kRead);
  Columns o(out, part, part.group, kWritten);
  const int64_t head = part.head, most_rows = part.queries() * part.group;
  std::vector<float> scores(static_cast<size_t>(most_rows * part.time)), sums(static_cast<size_t>(most_rows));
  for (int64_t first = 0; first < part.time; first += part.queries()) {
    const QueryBlock block(part, first);
    const int64_t rows = block.rows(part), keys = block.keys;
    gemm(rows, keys, head, part.scale, q.at(first * part.group), k.at(block.low, true), 0, scores.data(), keys);
    for (int64_t i = 0; i < rows; ++i) {
      float* row = scores.data() + i * keys;
      const Seen seen = seen_by(part, block, i);
      float most = 0, &sum = sums[static_cast<size_t>(i)];
      if (part.cap > 0) cap_row(row + seen.begin, seen.count, part.cap, nullptr);
      sum = exp_of_row(row + seen.begin, seen.count, most);
      clear_unseen(row, seen, keys);
      log_sums[(first + i / part.group) * part.shape.heads + i % part.group] = most + std::log(sum);
    }
    gemm(rows, head, keys, 1, {scores.data(), keys}, v.at(block.low), 0, o.row(first * part.group), o.stride);
    for (int64_t i = 0; i < rows; ++i) scale_row(o.row(first * part.group + i), head, 1 / sums[static_cast<size_t>(i)]);
  }
  o.store();
}

void backward_of(const HeadPart& part, const AttentionInput& in, const at::Tensor& out, const float* log_sums, const at::Tensor& d_out,
                 const AttentionInput& gradients) {
  Columns q(in.q, part, part.group, kReadRotated), k(in.k, part, 1, kReadRotated), v(in.v, part, 1, kRead);
  Columns o(out, part, part.group, kRead), d_o(d_out, part, part.group, kRead);
  Columns d_q(gradients.q, part, part.group, kWrittenRotated), d_k(gradients.k, part, 1, kWrittenRotated);
  Columns d_v(gradients.v, part, 1, kWritten);
  const int64_t head = part.head, group = part.group;
  std::vector<float> scores(static_cast<size_t>(part.queries() * group * part.time)), d_scores(scores.size());
  std::vector<float> slopes(static_cast<size_t>(part.cap > 0 ? part.time : 0));  // of a row's caps
  // From the last block, which sees all keys if there is no window, and so writes all rows of d_k and d_v; the others add to them.
  const int64_t last = (part.time - 1) / part.queries() * part.queries();
  const bool adds_from_the_first = part.shape.window > 0;
  if (adds_from_the_first) {
    d_k.clear();
    d_v.clear();
  }
  for (int64_t first = last; first >= 0; first -= part.queries()) {
    const QueryBlock block(part, first);
    const int64_t rows = block.rows(part), keys = block.keys, at = first * group;
    const float onto = first == last && !adds_from_the_first ? 0 : 1;
    gemm(rows, keys, head, part.scale, q.at(at), k.at(block.low, true), 0, scores.data(), keys);
    gemm(rows, keys, head, 1, d_o.at(at), v.at(block.low, true), 0, d_scores.data(), keys);
    for (int64_t i = 0; i < rows; ++i) {
      float *row = scores.data() + i * keys, *d_row = d_scores.data() + i * keys;
      const Seen seen = seen_by(part, block, i);
      if (part.cap > 0) cap_row(row + seen.begin, seen.count, part.cap, slopes.data());
      probabilities_of_row(row + seen.begin, seen.count, log_sums[(first + i / group) * part.shape.heads + i % group]);
      softmax_backward_of_row(row + seen.begin, d_row + seen.begin, seen.count, dot(d_o.row(at + i), o.row(at + i), head), part.scale);
      if (part.cap > 0) multiply_row(d_row + seen.begin, slopes.data(), seen.count);
      clear_unseen(row, seen, keys);
      clear_unseen(d_row, seen, keys);
    }
    gemm(keys, head, rows, 1, {scores.data(), keys, true}, d_o.at(at), onto, d_v.row(block.low), d_v.stride);
    gemm(keys, head, rows, 1, {d_scores.data(), keys, true}, q.at(at), onto, d_k.row(block.low), d_k.stride);
    gemm(rows, head, keys, 1, {d_scores.data(), keys}, k.at(block.low), 0, d_q.row(at), d_q.stride);
  }
  d_q.store();
  d_k.store();
  d_v.store();
}

template <class Body>
void for_each_part(const AttentionShape& shape, const Body& body) {
  const auto sequences = static_cast<int64_t>(shape.starts.size()) - 1;
  at::parallel_for(0, sequences * shape.kv_heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto sequence = static_cast<size_t>(i / shape.kv_heads);
      const int64_t first = shape.starts[sequence], kv_head = i % shape.kv_heads;
      const HeadPart part{shape, first, shape.starts[sequence + 1] - first, kv_head};
      if (part.time > 0) body(part, first * shape.heads + kv_head * part.group);
    }
  });
}

}  // namespace

void attention_forward(const AttentionShape& shape, const AttentionInput& in, const at::Tensor& out, const at::Tensor& log_sums) {
  for_each_part(shape, [&](const HeadPart& part, int64_t offset) { forward_of(part, in, out, log_sums.data_ptr<float>() + offset); });
}

void attention_backward(const AttentionShape& shape, const AttentionInput& in, const at::Tensor& out, const at::Tensor& log_sums,
                        const at::Tensor& d_out, const AttentionInput& gradients) {
  for_each_part(shape, [&](const HeadPart& part, int64_t offset) {
    backward_of(part, in, out, log_sums.data_ptr<float>() + offset, d_out, gradients);
  });
}

}  // namespace phalanx::engine::model
