#include "engine/train/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

namespace engine::train {

AdamW::AdamW(std::vector<parallel::Bucket>& buckets, const AdamWOptions& options) : buckets_(buckets), options_(options) {
  for (const parallel::Bucket& bucket : buckets) {
    mean.push_back(at::zeros_like(bucket.params));
    variance.push_back(at::zeros_like(bucket.params));
  }
}

void AdamW::step(double lr) {
  at::NoGradGuard no_grad;
  ++steps_done;
  const auto [beta1, beta2, epsilon, weight_decay] = options_;
  const double correction1 = 1 - std::pow(beta1, static_cast<double>(steps_done));
  const double correction2 = 1 - std::pow(beta2, static_cast<double>(steps_done));
  for (size_t b = 0; b < buckets_.size(); ++b) {
    auto& [slots, params, grads, decay] = buckets_[b];
    if (decay) params.mul_(1 - lr * weight_decay);
    mean[b].mul_(beta1).add_(grads, 1 - beta1);
    variance[b].mul_(beta2).addcmul_(grads, grads, 1 - beta2);
    at::Tensor denominator = at::sqrt(variance[b]).div_(std::sqrt(correction2)).add_(epsilon);
    params.addcdiv_(mean[b], denominator, -lr / correction1);
  }
}

}  // namespace engine::train
