#include "tune/recipe/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/json.h"
#include "base/unicode.h"

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

namespace {

// A number of lr_scheduler_kwargs, and between what it must lie.
struct Kwarg {
  std::string_view type, key;
  double least, most;
};
constexpr std::array kKwargs{Kwarg{"cosine", "num_cycles", 0, 1e6},
                             Kwarg{"cosine_with_restarts", "num_cycles", 1, 1e6},
                             Kwarg{"cosine_with_min_lr", "num_cycles", 0, 1e6},
                             Kwarg{"cosine_with_min_lr", "min_lr", 0, 1e6},
                             Kwarg{"cosine_with_min_lr", "min_lr_rate", 0, 1},
                             Kwarg{"polynomial", "lr_end", 0, 1e6},
                             Kwarg{"polynomial", "power", 0, 1e3},
                             Kwarg{"inverse_sqrt", "timescale", 1, 1e15}};

double kwarg(const Recipe& recipe, const char* key, double otherwise) {
  return base::get_number(recipe.lr_scheduler_kwargs.tree, key).value_or(otherwise);
}

double cosine(double turns) { return 0.5 * (1 + std::cos(std::numbers::pi * turns)); }

// The share of the largest learning rate after warm-up; `share` of the steps behind it are done.
double course(const Recipe& recipe, double share) {
  const std::string& type = recipe.lr_scheduler_type;
  if (type == "cosine") return std::max(0.0, cosine(2 * kwarg(recipe, "num_cycles", 0.5) * share));
  if (type == "cosine_with_restarts") {
    const double turns = kwarg(recipe, "num_cycles", 1) * share;
    return share >= 1 ? 0 : std::max(0.0, cosine(turns - std::floor(turns)));
  }
  if (type == "cosine_with_min_lr") {
    const double least = kwarg(recipe, "min_lr_rate", kwarg(recipe, "min_lr", 0) / std::max(recipe.learning_rate, 1e-300));
    return std::max(0.0, cosine(2 * kwarg(recipe, "num_cycles", 0.5) * share) * (1 - least) + least);
  }
  return 1;
}

}  // namespace

std::optional<std::string> schedule_problem(const Recipe& recipe) {
  if (!recipe.lr_scheduler_kwargs.path.empty()) return "lr_scheduler_kwargs is not a mapping";
  if (recipe.lr_scheduler_kwargs.tree.is_null()) return std::nullopt;
  for (const auto& [key, value] : recipe.lr_scheduler_kwargs.tree.items()) {
    auto known = std::find_if(kKwargs.begin(), kKwargs.end(), [&, name = std::string_view(key)](const Kwarg& one) {
      return one.type == recipe.lr_scheduler_type && one.key == name;
    });
    if (known == kKwargs.end()) return fmt::format("lr_scheduler_kwargs: {} has no {}", recipe.lr_scheduler_type, base::quote(key));
    const double number = value.is_number() ? value.get<double>() : std::nan("");
    if (!(number >= known->least && number <= known->most))
      return fmt::format("lr_scheduler_kwargs: {} is not a number from {} to {}", key, known->least, known->most);
  }
  return std::nullopt;
}

double rate_at(const Recipe& recipe, int64_t step, int64_t steps) {
  const double peak = recipe.learning_rate;
  const std::string& type = recipe.lr_scheduler_type;
  if (type == "constant") return peak;
  const int64_t warmup = warmup_of(recipe, steps);
  if (step < warmup) return peak * (static_cast<double>(step) / static_cast<double>(std::max<int64_t>(warmup, 1)));
  if (type == "inverse_sqrt") {
    const double scale = kwarg(recipe, "timescale", static_cast<double>(warmup > 0 ? warmup : 10000));
    return peak / std::sqrt((static_cast<double>(step - warmup) + scale) / scale);
  }
  const auto rest = static_cast<double>(std::max<int64_t>(steps - warmup, 1));
  if (type == "linear") return peak * std::max(0.0, static_cast<double>(steps - step) / rest);
  if (type == "polynomial") {
    const double end = kwarg(recipe, "lr_end", 1e-7);
    if (step > steps) return end;
    return (peak - end) * std::pow(1 - static_cast<double>(step - warmup) / rest, kwarg(recipe, "power", 1)) + end;
  }
  return peak * course(recipe, static_cast<double>(step - warmup) / rest);
}

}  // namespace phalanx::tune
