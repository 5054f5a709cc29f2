// One rank's training: the model, its share of the data, and the loop. train/rank.cc strings the calls together.
//
// The loss of step k does not depend on the number of ranks, the number of micro-batches or the parallel mode, up to rounding: a
// step's batch is the same set of sequences, and every target token counts the same wherever it lies, because sums of losses are
// divided by the number of targets of all ranks. So the curve of one rank is the proof of the curve of many.
//
// Every decision that changes what a rank does next (the data has ended, a signal came, the loss is best, enough is enough) is made from
// numbers that all ranks have exchanged; so no rank ever waits in an operation for one that has turned elsewhere.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "engine/autocast.h"
#include "engine/comm/group.h"
#include "engine/model/gpt.h"
#include "engine/optim/grad_scaler.h"
#include "engine/optim/optimizer.h"
#include "engine/parallel/data_parallel.h"
#include "engine/train/build.h"
#include "engine/train/config.h"
#include "engine/train/early_stop.h"
#include "engine/train/phase_clock.h"
#include "engine/train/report/progress.h"
#include "engine/train/saving.h"

namespace phalanx::engine::train {

class Trainer {
 public:
  // Opens the data and builds the model with its initial weights; all ranks agree on config, data and model, and take rank 0's weights
  // or the newest checkpoint's. Collective. `config`, `group` and `progress` must outlive it.
  static base::Result<std::unique_ptr<Trainer>> begin(const Config& config, comm::Group& group, Progress& progress,
                                                      const checkpoint::Attempt& attempt = {});

  // To the last step, or until a rank was asked to stop; then the checkpoint is saved. Returns that signal, 0 for none.
  base::Result<int> run();

  // Text the model writes, at rank 0 to stdout and <out>/sample.txt. Collective.
  base::Status write_sample();

  int64_t steps_done() const { return optimizer_->steps_done; }
  const parallel::DataParallel& parallel() const { return *parallel_; }

 private:
  // What the ranks know of a step before they compute it.
  struct Plan {
    int64_t targets = 0;   // of all ranks
    int64_t passes = 0;    // the most that any rank makes
    int signal = 0;        // that any rank received
    double data = 0;       // seconds that the slowest rank took to read its share
    int64_t resident = 0;  // bytes, of the rank that has most; as of the last step that was printed
    int64_t resident_peak = 0;
  };
  Trainer(const Config& config, comm::Group& group, Progress& progress) : config_(config), group_(group), progress_(progress) {}
  base::Status build();
  base::Status resume(const checkpoint::Attempt& attempt);
  base::Status restore(const base::Json& state);
  base::Json state() const;
  RunFacts facts();
  void announce(const RunFacts& facts) const;

  base::Result<Plan> plan_step(base::Result<data::Step>& mine, double data_seconds);
  double compute(const data::Step& mine, const Plan& plan);
  std::unique_ptr<AutocastScope> cast() const;
  at::Tensor nothing_to_learn();
  void seed_dropout();
  double sum_over_ranks(double value, std::string_view label);
  base::Status after_step(const StepReport& report, bool last);
  base::Status validate();
  base::Status save();

  const Config& config_;
  comm::Group& group_;
  Progress& progress_;
  PhaseClock clock_{group_.device()};
  Precision precision_;
  TrainingData data_;
  model::Gpt gpt_{nullptr};
  std::unique_ptr<parallel::DataParallel> parallel_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  optim::GradScaler scaler_;
  EarlyStop early_stop_;
  std::optional<checkpoint::Best> best_;  // since the last save
  std::optional<double> validation_loss_;
  base::Json state_of_data_;                  // behind the last step
  int64_t resident_ = 0, resident_peak_ = 0;  // bytes of this rank's process
  std::unique_ptr<Saving> saving_;
};

}  // namespace phalanx::engine::train
