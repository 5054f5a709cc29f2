// The learning rate as a function of the step: linear warm-up, then half a cosine down to a floor. Pure.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace engine::train {

struct Schedule {
  double lr = 0, min_lr = 0;
  int64_t warmup = 0;  // steps
  int64_t steps = 1;   // of the whole run

  // step counts from 0. The first step already moves: warm-up gives (step + 1) / warmup of lr.
  double at(int64_t step) const {
    if (step < warmup) return lr * static_cast<double>(step + 1) / static_cast<double>(warmup);
    if (step >= steps) return min_lr;
    const double done = static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
    return min_lr + 0.5 * (lr - min_lr) * (1 + std::cos(std::numbers::pi * done));
  }
};

}  // namespace engine::train
