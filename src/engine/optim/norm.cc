#include "engine/optim/norm.h"

#include <ATen/Parallel.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>

#include <algorithm>

#include "engine/optim/row_kernels.h"

namespace phalanx::engine::optim {
namespace {

constexpr int64_t kPiece = 1 << 15, kBlock = 4096;

double sum_of_shorts(const at::Tensor& row, int64_t begin, int64_t end) {
  const auto* shorts = static_cast<const uint16_t*>(row.data_ptr());
  alignas(64) float buffer[kBlock];
  double sum = 0;
  for (; begin < end; begin += kBlock) {
    const int64_t n = std::min(kBlock, end - begin);
    if (row.scalar_type() == at::kHalf) widen_fp16(shorts + begin, buffer, n);
    else widen_bf16(shorts + begin, buffer, n);
    sum += sum_of_squares(buffer, n);
  }
  return sum;
}

double sum_on_host(const at::Tensor& row) {
  const int64_t n = row.numel(), pieces = (n + kPiece - 1) / kPiece;
  std::vector<double> sums(static_cast<size_t>(pieces));
  at::parallel_for(0, pieces, 4, [&](int64_t first, int64_t last) {
    for (int64_t piece = first; piece < last; ++piece) {
      const int64_t begin = piece * kPiece, end = std::min(n, begin + kPiece);
      sums[static_cast<size_t>(piece)] =
          row.scalar_type() == at::kFloat ? sum_of_squares(row.data_ptr<float>() + begin, end - begin) : sum_of_shorts(row, begin, end);
    }
  });
  double sum = 0;
  for (double piece : sums) sum += piece;
  return sum;
}

}  // namespace

double sum_of_squares(const std::vector<at::Tensor>& rows) {
  double sum = 0;
  std::vector<at::Tensor> elsewhere;  // waited for once, not row by row
  for (const at::Tensor& row : rows) {
    if (row.is_cpu()) {
      sum += sum_on_host(row);
      continue;
    }
    const at::Tensor wide = row.to(at::kFloat);
    elsewhere.push_back(at::sum(wide.mul(wide), at::kDouble));
  }
  return elsewhere.empty() ? sum : sum + at::stack(elsewhere).sum().item<double>();
}

double clip_scale(double norm, double max_norm) {
  if (max_norm <= 0 || norm <= max_norm) return 1;
  return max_norm / (norm + 1e-6);
}

}  // namespace phalanx::engine::optim
