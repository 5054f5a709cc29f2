#include "tune/recipe/steps.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace phalanx::tune {

int64_t total_steps(const Recipe& recipe, int64_t rows, int64_t world) {
  if (recipe.max_steps > 0) return recipe.max_steps;
  const int64_t batch = recipe.per_device_train_batch_size * world, accumulate = recipe.gradient_accumulation_steps;
  const int64_t batches = (rows + batch - 1) / batch, per_epoch = std::max<int64_t>((batches + accumulate - 1) / accumulate, 1);
  return static_cast<int64_t>(std::ceil(recipe.num_train_epochs * static_cast<double>(per_epoch)));
}

int64_t warmup_of(const Recipe& recipe, int64_t steps) {
  if (recipe.warmup_steps > 0) return recipe.warmup_steps;
  return static_cast<int64_t>(std::ceil(recipe.warmup_ratio * static_cast<double>(steps)));
}

double rate_at(const Recipe& recipe, int64_t step, int64_t steps) {
  const double peak = recipe.learning_rate;
  if (recipe.lr_scheduler_type == "constant") return peak;
  const int64_t warmup = warmup_of(recipe, steps);
  if (step < warmup) return peak * (static_cast<double>(step) / static_cast<double>(std::max<int64_t>(warmup, 1)));
  if (recipe.lr_scheduler_type == "constant_with_warmup") return peak;
  const auto rest = static_cast<double>(std::max<int64_t>(steps - warmup, 1));
  if (recipe.lr_scheduler_type == "linear") return peak * std::max(0.0, static_cast<double>(steps - step) / rest);
  return peak * std::max(0.0, 0.5 * (1 + std::cos(std::numbers::pi * (static_cast<double>(step - warmup) / rest))));
}

}  // namespace phalanx::tune
