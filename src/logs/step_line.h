// The number of the training step in a line of output, where the line tells of one. Pure.
//
// Understood: "step 12", "global_step=12", "iter 12/1000", "Iteration: 12", "batch 3/100", "[12/1000]", "Step[12]"; transformers' Trainer
// ({'loss': 2.3, …, 'epoch': 0.03}); progress bars (logs/progress_bar.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace phalanx::logs {

// A number that differs from step to step; not always the step itself (for an epoch, its millionths). Only the first 1024 bytes count.
std::optional<int64_t> step_in(std::string_view line);

// The figures of a line of training: "step 5/300 loss 16.7", "global_step=12, train_loss: 2.3", "[12/1000] loss 2.3", "Iteration 3 of 9",
// transformers' {'loss': 2.3, 'epoch': 0.03}, which has no step. Nothing for a line with fewer than two of them, or with a step that no
// word names; for a dictionary of the Trainer the loss is enough.
struct StepFigures {
  std::optional<int64_t> step, total;
  std::optional<double> loss;
};
std::optional<StepFigures> step_figures(std::string_view line);

}  // namespace phalanx::logs
