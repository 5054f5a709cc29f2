// What a fine-tuning remembers of its steps, and the files that tell of it as Hugging Face's Trainer and LLaMA-Factory do.
// Source: transformers v4.51.3, src/transformers/trainer_callback.py (TrainerState); LLaMA-Factory v0.9.3, train/callbacks.py.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/tuning/fine_tuning.h"
#include "tune/recipe/recipe.h"

namespace phalanx::engine::finetune {

// A line of the log: what the steps since the last line came to.
struct LogLine {
  int64_t step = 0;
  double epoch = 0, loss = 0, gradient_norm = 0, rate = 0;
  tuning::PairMetrics pairs{};  // stage dpo
};

class History {
 public:
  // `flops_per_token`: 6 times the parameters without the embedding, as the Trainer counts them.
  History(const tune::Recipe& recipe, int64_t steps, int64_t rows, double flops_per_token, int64_t world);

  // Counts a step; its line, where logging_steps has one.
  std::optional<LogLine> add(const tuning::StepReport& report, int64_t step, double epoch);
  // Whether an evaluation is due after this step, which ended an epoch or did not; it comes before a checkpoint.
  bool evaluates_after(int64_t step, bool epoch_ends) const;
  // The entry of the log, which took so long. It is compared with the best one so far, where the recipe asks for that.
  const base::Json& add(const tuning::Evaluation& evaluation, double seconds);
  // The step of the best evaluation, and of the best one that has a checkpoint; 0 without one.
  int64_t best_step() const { return best_step_; }
  int64_t best_checkpoint() const { return best_checkpoint_; }
  const std::string& best_folder() const { return best_folder_; }  // of that checkpoint
  // Whether as many evaluations in a row as the recipe allows were no better than the best.
  bool stops_early() const { return recipe_.early_stopping_steps && worse_ >= *recipe_.early_stopping_steps; }
  // Whether a checkpoint is due after this step, which ended an epoch or did not.
  bool saves_after(int64_t step, bool epoch_ends) const;

  base::Json trainer_state() const;
  // Error kConfig: the evaluations of this stage have no metric_for_best_model.
  static base::Status check(const tune::Recipe& recipe);
  // train_results.json, of a training that took so long; the log gets its last entry.
  base::Json finish(double seconds);
  // eval_results.json, of the newest evaluation.
  base::Json evaluation_results() const;
  const std::vector<base::Json>& log() const { return log_; }
  double loss_sum() const { return loss_sum_; }

  // For checkpoints: trainer_state.json has the log, these have the sums since its last line, exactly.
  std::map<std::string, std::string> sums() const;
  // `beside`: where the checkpoint lies, and earlier ones. Error kConfig: not the state of such a run.
  base::Status restore(const base::Json& trainer_state, const std::map<std::string, std::string>& sums, const std::string& beside);

 private:
  void compare(const base::Json& entry, const std::string& beside);
  base::Json callbacks() const;

  tune::Recipe recipe_;
  int64_t steps_, rows_, world_, logging_every_, saving_every_, evaluating_every_;
  double flops_per_token_;
  std::vector<base::Json> log_;
  int64_t step_ = 0, window_steps_ = 0;
  tuning::PairMetrics window_pairs_{};  // sums since the last line
  std::string best_folder_;
  std::optional<double> best_;                               // of metric_for_best_model
  int64_t best_step_ = 0, best_checkpoint_ = 0, worse_ = 0;  // worse_: evaluations since then
  double epoch_ = 0, loss_sum_ = 0, window_loss_ = 0, flops_ = 0;
};

// A line of trainer_log.jsonl.
base::Json progress_line(const base::Json& entry, int64_t steps, double elapsed_s);

}  // namespace phalanx::engine::finetune
