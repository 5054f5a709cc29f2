// The fine-tuning of a Decoder, step by step, with the semantics of HF's Trainer: the order of rows, the loss of a step, clipping, learning
// rates, AdamW. Over several ranks it is data parallel (engine/parallel), with the recipe's stage of ZeRO: every rank has all rows, batch i
// of a step goes to rank i mod world, and gradients are summed. A step's loss is the mean over its labels on all ranks, so that W ranks do
// what one does with W times the accumulation; at an epoch's end no row is repeated.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/group.h"
#include "engine/optim/adamw.h"
#include "engine/parallel/data_parallel.h"
#include "engine/tuning/decoder/decoder.h"
#include "engine/tuning/hf_folder.h"
#include "tune/recipe/recipe.h"

namespace phalanx::engine::tuning {

// A sequence as data gives it; labels are not shifted, and GptImpl::kNoTarget where nothing is learned.
struct TuningRow {
  std::vector<int64_t> ids, labels;
};

// The batches of rows of step after step. Epoch e is torch.randperm with seed + e; its last batch may be short, and its last step may have
// fewer batches.
class RowOrder {
 public:
  RowOrder(int64_t rows, int64_t batch, int64_t accumulate, uint64_t seed);
  std::vector<std::vector<int64_t>> next_step();
  double epochs() const;  // gone through so far, counted in batches as HF's Trainer does

 private:
  int64_t rows_, batch_, accumulate_;
  uint64_t seed_;
  int64_t epoch_ = 0, done_ = 0;
  std::vector<int64_t> order_;
};

struct StepReport {
  double loss = 0;           // nats per label, over all micro-batches
  double gradient_norm = 0;  // before clipping
  double rate = 0;           // of this step
  int64_t labels = 0;        // that the loss was divided by
  int64_t tokens = 0;        // of its rows
  bool stops = false;        // some rank wants to stop
  std::vector<std::vector<int64_t>> rows;
};

class FineTuning {
 public:
  // Trains what requires a gradient; throws std::invalid_argument if that is nothing, there are no rows, or one is empty. `group`: the
  // ranks, all of which make every step, with equal models, recipes and rows; null for one rank. All take rank 0's parameters. `fill`:
  // writes the parameters of a decoder that has no values yet, the same operations on every rank; so with stage 3 no rank ever holds all of
  // it.
  FineTuning(Decoder decoder, const tune::Recipe& recipe, std::vector<TuningRow> rows, comm::Group* group = nullptr,
             const std::function<void()>& fill = {});
  int64_t steps() const { return steps_; }
  int64_t done() const { return done_; }
  double epochs() const { return order_.epochs(); }
  StepReport step(bool wants_to_stop = false);

  // What a stopped run needs to continue bit for bit, by name: the trained parameters, and of each the optimizer's means. Dropout needs
  // nothing: its random numbers are those of the step. Collective: whole at rank 0, nothing elsewhere.
  std::vector<NamedTensor> state();
  std::vector<NamedShape> state_shapes() const;
  // Collective: rank 0 fills each tensor of the state, every rank gets what it holds. An Error of `fill` is every rank's.
  base::Status load_state(const std::function<base::Status(const NamedTensor&)>& fill);
  // Continues after step `done` of a run with the same recipe and rows, whose state was loaded. Only once, and before the first step().
  void continue_after(int64_t done);

  // Collective: `use` runs on rank 0 while the whole model is there; its Error is every rank's.
  base::Status with_whole_model(const std::function<base::Status()>& use) { return parallel_->with_whole_model(use); }
  std::string describe() const { return parallel_->describe(); }
  parallel::MemoryUse memory() const { return parallel_->memory(); }

 private:
  model::SummedLoss loss_of(const std::vector<int64_t>& batch);
  void learn(const std::vector<std::vector<int64_t>>& batches, StepReport* report);
  void add_up(StepReport* report, bool wants_to_stop);

  Decoder decoder_;
  tune::Recipe recipe_;
  std::unique_ptr<comm::Group> alone_;  // of one rank, where none was given
  comm::Group& group_;
  std::vector<TuningRow> rows_;
  int64_t steps_, done_ = 0;
  RowOrder order_;
  std::unique_ptr<parallel::DataParallel> parallel_;
  std::unique_ptr<optim::AdamW> optimizer_;
};

}  // namespace phalanx::engine::tuning
