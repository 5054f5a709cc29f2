#include "engine/optim/row_pass.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "engine/optim/row_kernels.h"

namespace phalanx::engine::optim {
namespace {

constexpr int64_t kBlock = 4096;         // elements: four rows of 16 KiB in use at once stay in L2
constexpr int64_t kPerThread = 1 << 16;  // below it another thread costs more than it brings

const float* widened(const at::Tensor& grads, int64_t begin, int64_t n, float* buffer) {
  if (grads.scalar_type() == at::kFloat) return grads.data_ptr<float>() + begin;
  const auto* shorts = static_cast<const uint16_t*>(grads.data_ptr()) + begin;
  if (grads.scalar_type() == at::kHalf) widen_fp16(shorts, buffer, n);
  else widen_bf16(shorts, buffer, n);
  return buffer;
}

void round_into(const at::Tensor& compute, const float* params, int64_t begin, int64_t n) {
  auto* shorts = static_cast<uint16_t*>(compute.data_ptr()) + begin;
  if (compute.scalar_type() == at::kHalf) round_fp16(params, shorts, n);
  else round_bf16(params, shorts, n);
}

}  // namespace

void pass_over(const Row& row, const Run& run, const std::function<void(const Block&)>& loop) {
  float* params = row.params.data_ptr<float>();
  // No copy, so nothing to keep in a cache: the loop may take the run as one block.
  const bool whole = row.grads.scalar_type() == at::kFloat && !row.compute.defined();
  at::parallel_for(run.begin, run.end, kPerThread, [&](int64_t first, int64_t last) {
    alignas(64) float buffer[kBlock];
    const int64_t stride = whole ? last - first : kBlock;
    for (int64_t begin = first; begin < last; begin += stride) {
      const int64_t n = std::min(stride, last - begin);
      loop({params + begin, widened(row.grads, begin, n, buffer), begin, n});
      if (row.compute.defined()) round_into(row.compute, params + begin, begin, n);
    }
  });
}

}  // namespace phalanx::engine::optim
