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

// The figures of a line of training: "step 5/300 loss 16.7", "global_step=12, train_loss: 2.3", "[12/1000] loss 2.3", "Iteration 3 of 9";
// transformers' {'loss': 2.3, 'epoch': 0.03}, which has no step; LLaMA-Factory's {"current_steps": 5, "total_steps": 30, "loss": 1.2, …};
// DeepSpeed's "step=10, skipped=0, lr=[…]" and "global_step=10, RunningAvgSamplesPerSec=102.3, …"; Megatron's " iteration 10/ 100 | …
// | lm loss: 9.8E+00 | …"; torchtitan's "step: 1  loss: 12.2  …  tps: 4,123  mfu: 7.7%", in colours. Nothing for a line with fewer than
// two of them, or with a step that no word names; for a dictionary of the Trainer the loss is enough. Of evaluations and of the summary
// at the end nothing: their loss is another.
struct StepFigures {
  std::optional<int64_t> step, total;
  std::optional<double> loss;
  std::optional<double> tokens_per_s, samples_per_s;
  bool per_rank = false;  // tokens_per_s is that of one rank
};
std::optional<StepFigures> step_figures(std::string_view line);

}  // namespace phalanx::logs
