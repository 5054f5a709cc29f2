#include "engine/parallel/flat.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "base/check.h"

namespace engine::parallel {
namespace {

constexpr int64_t kAlignBytes = 64;

int64_t aligned(int64_t elements, int64_t element_bytes) {
  const int64_t unit = kAlignBytes / element_bytes;
  return (elements + unit - 1) / unit * unit;
}

// Moves the parameters of one bucket into its buffers.
void take(Bucket& bucket, int64_t elements) {
  at::NoGradGuard no_grad;
  at::TensorOptions options = bucket.slots.front().param.options().requires_grad(false);
  bucket.params = at::zeros({elements}, options);
  bucket.grads = at::zeros({elements}, options);
  for (Slot& slot : bucket.slots) {
    at::Tensor place = view_of(bucket.params, slot);
    place.copy_(slot.param);
    slot.param.set_data(place);  // keeps the tensor's identity and its gradient accumulator
    slot.param.mutable_grad() = view_of(bucket.grads, slot);
  }
}

}  // namespace

at::Tensor view_of(const at::Tensor& flat, const Slot& slot) {
  return flat.narrow(0, slot.offset, slot.param.numel()).view(slot.param.sizes());
}

std::vector<Bucket> flatten(const std::vector<NamedParam>& params, const BucketSizes& sizes) {
  std::vector<Bucket> buckets;
  // Weights first, the few and small parameters without decay in buckets of their own behind them. Backward meets the
  // last layers first.
  for (bool decay : {true, false}) {
    int64_t elements = 0;
    bool open = false;
    for (auto param = params.rbegin(); param != params.rend(); ++param) {
      if (param->decay != decay) continue;
      CHECK(param->value.is_leaf() && param->value.requires_grad());
      const int64_t limit = buckets.size() <= 1 ? sizes.first_bytes : sizes.bytes;
      const int64_t bytes = param->value.element_size();
      if (open && (elements + param->value.numel()) * bytes > limit) {
        take(buckets.back(), elements);
        open = false;
      }
      if (!open) {
        buckets.push_back(Bucket{{}, {}, {}, decay});
        elements = 0;
        open = true;
      }
      buckets.back().slots.push_back({param->name, param->value, elements});
      elements += aligned(param->value.numel(), bytes);
    }
    if (open) take(buckets.back(), elements);
  }
  return buckets;
}

void zero_grads(std::vector<Bucket>& buckets) {
  for (Bucket& bucket : buckets) bucket.grads.zero_();
}

double clip_grads(std::vector<Bucket>& buckets, double max_norm) {
  double squares = 0;
  for (const Bucket& bucket : buckets) squares += at::dot(bucket.grads, bucket.grads).item<double>();
  const double norm = std::sqrt(squares);
  if (max_norm > 0 && norm > max_norm) {
    const double scale = max_norm / (norm + 1e-6);  // the same guard as torch.nn.utils.clip_grad_norm_
    for (Bucket& bucket : buckets) bucket.grads.mul_(scale);
  }
  return norm;
}

}  // namespace engine::parallel
