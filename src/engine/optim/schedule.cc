#include "engine/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace phalanx::engine::optim {

std::optional<Curve> curve_of(std::string_view name) {
  if (name == "constant") return Curve::kConstant;
  if (name == "linear") return Curve::kLinear;
  if (name == "cosine") return Curve::kCosine;
  return std::nullopt;
}

double Schedule::at(int64_t step) const {
  if (step < warmup) return lr * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (curve == Curve::kConstant) return lr;
  if (step >= steps) return min_lr;
  const double done = static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
  if (curve == Curve::kLinear) return min_lr + (lr - min_lr) * (1 - done);
  return min_lr + 0.5 * (lr - min_lr) * (1 + std::cos(std::numbers::pi * done));
}

int64_t warmup_steps(double ratio, int64_t steps) {
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(ratio * static_cast<double>(steps))), 0, steps);
}

}  // namespace phalanx::engine::optim
