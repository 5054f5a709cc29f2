// The learning rate as a function of the step: a linear warm-up, then constant, linear or half a cosine down to a floor. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace phalanx::engine::optim {

enum class Curve { kConstant, kLinear, kCosine };
std::optional<Curve> curve_of(std::string_view name);  // "constant", "linear", "cosine"

struct Schedule {
  Curve curve = Curve::kCosine;
  double lr = 0, min_lr = 0;  // min_lr: reached after the last step; of no meaning to kConstant
  int64_t warmup = 0;         // steps
  int64_t steps = 1;          // of the whole run

  // step counts from 0. The first step already moves: warm-up gives (step + 1) / warmup of lr. From `steps` on: the end of the curve.
  double at(int64_t step) const;
};

// Warm-up given as a share of the run, rounded up as in Hugging Face's TrainingArguments.warmup_ratio.
int64_t warmup_steps(double ratio, int64_t steps);

}  // namespace phalanx::engine::optim
