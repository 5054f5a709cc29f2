// One rank's training: the model, its share of the data, and the loop. train/rank.cc strings the calls together.
//
// The loss of step k does not depend on the number of ranks or on accumulation, up to rounding: a step's batch is the same
// set of sequences, every rank takes an equal share, all sequences have equally many target tokens, and gradients are
// averaged. So the curve of one rank is the proof of the curve of many.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/comm/group.h"
#include "engine/data/corpus.h"
#include "engine/data/loader.h"
#include "engine/model/gpt.h"
#include "engine/optim/adamw.h"
#include "engine/parallel/ddp.h"
#include "engine/train/config.h"
#include "engine/train/progress.h"

namespace engine::train {

class Trainer {
 public:
  // Opens the corpus and builds the model with its initial weights. `config`, `group` and `progress` must outlive it.
  static base::Result<std::unique_ptr<Trainer>> create(const Config& config, comm::Group& group, Progress& progress);

  // All ranks agree on config, corpus and model, and take rank 0's weights: its newest checkpoint's, or fresh ones.
  base::Status begin();

  // To the last step, or until a rank was asked to stop; then the checkpoint is saved. Returns that signal, 0 for none.
  base::Result<int> run();

  // Text the model writes, on rank 0 to stdout and <out>/sample.txt.
  base::Status write_sample();

  int64_t steps_done() const { return optimizer_->steps_done; }
  const std::vector<parallel::Bucket>& buckets() const { return buckets_; }

 private:
  struct Agreed {
    double loss = 0;  // mean over the step's whole batch
    int signal = 0;   // that any rank received
  };
  Trainer(const Config& config, comm::Group& group, Progress& progress, data::Corpus corpus)
      : config_(config), group_(group), progress_(progress), corpus_(std::move(corpus)) {}
  base::Status open_data();
  void build_model();

  base::Status load_state();  // rank 0
  void share_state();

  double forward_backward(int64_t step);
  Agreed agree(double local_loss, int local_signal);
  base::Status validate();
  base::Status save();  // rank 0, unless this step is saved already

  const Config& config_;
  comm::Group& group_;
  Progress& progress_;
  data::Corpus corpus_;
  std::optional<data::Loader> training_, validation_;
  model::Gpt gpt_{nullptr};
  std::vector<parallel::Bucket> buckets_;
  std::optional<parallel::Ddp> ddp_;
  std::optional<optim::AdamW> optimizer_;
  std::optional<double> validation_loss_;
  int64_t saved_step_ = -1;
};

}  // namespace engine::train
