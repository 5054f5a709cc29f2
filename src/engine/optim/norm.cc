#include "engine/optim/norm.h"

#include <ATen/Parallel.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <vector>

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

}  // namespace

double sum_of_squares(const at::Tensor& row) {
  if (!row.is_cpu()) {
    at::Tensor wide = row.to(at::kFloat);
    return at::sum(wide.mul(wide), at::kDouble).item<double>();
  }
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

double clip_scale(double norm, double max_norm) {
  if (max_norm <= 0 || norm <= max_norm) return 1;
  return max_norm / (norm + 1e-6);
}

}  // namespace phalanx::engine::optim
