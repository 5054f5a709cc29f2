// Steps and learning rates as HF's Trainer has them. Source: transformers, src/transformers/trainer.py and optimization.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tune/recipe/recipe.h"

namespace phalanx::tune {

// Of the whole run. `rows` of the data set, `world` ranks. Rounded up, as since transformers 4.52.
int64_t total_steps(const Recipe& recipe, int64_t rows, int64_t world);
int64_t warmup_of(const Recipe& recipe, int64_t steps);
// What is wrong with lr_scheduler_kwargs: a key that lr_scheduler_type does not have, or a value that is not a number in its range.
std::optional<std::string> schedule_problem(const Recipe& recipe);
// The learning rate of step `step`, from 0. Warm-up begins at 0: the first step of a run with one moves nothing.
double rate_at(const Recipe& recipe, int64_t step, int64_t steps);

}  // namespace phalanx::tune
