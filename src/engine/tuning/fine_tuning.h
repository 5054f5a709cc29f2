// The fine-tuning of a Decoder, step by step, with the semantics of HF's Trainer: the order of rows, the loss of a step, clipping, learning
// rates, AdamW. Over several ranks it is data parallel (engine/parallel), with the recipe's stage of ZeRO: every rank has all rows, batch i
// of a step goes to rank i mod world, and gradients are summed. A step's loss is the mean over its labels on all ranks, so that W ranks do
// what one does with W times the accumulation; at an epoch's end no row is repeated.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/comm/group.h"
#include "engine/optim/adamw.h"
#include "engine/parallel/data_parallel.h"
#include "engine/tuning/decoder/decoder.h"
#include "engine/tuning/hf_folder.h"
#include "engine/tuning/preference.h"
#include "tune/recipe/recipe.h"

namespace phalanx::engine::tuning {

// A sequence as data gives it; labels are not shifted, and GptImpl::kNoTarget where nothing is learned.
struct TuningRow {
  std::vector<int64_t> ids, labels;
  std::vector<int64_t> starts{};                           // packed: where its examples but the first begin
  std::vector<int64_t> rejected_ids{}, rejected_labels{};  // stage dpo: the same prompt with the answer that is not preferred
  double chosen_reference = 0, rejected_reference = 0;     // stage dpo: log p of the answers before training
};

// The batches of rows of step after step. Epoch e is torch.randperm with seed + e; its last batch may be short, and its last step may have
// fewer batches.
class RowOrder {
 public:
  // Without a seed the order is that of the rows.
  RowOrder(int64_t rows, int64_t batch, int64_t accumulate, std::optional<uint64_t> seed);
  std::vector<std::vector<int64_t>> next_step();
  double epochs() const;  // gone through so far, counted in batches as HF's Trainer does

 private:
  int64_t rows_, batch_, accumulate_;
  std::optional<uint64_t> seed_;
  int64_t epoch_ = 0, done_ = 0;
  std::vector<int64_t> order_;
};

struct StepReport {
  double loss = 0;           // nats per label, over all micro-batches; stage dpo: per pair
  double gradient_norm = 0;  // before clipping
  double rate = 0;           // of this step
  int64_t labels = 0;        // that the loss was divided by
  int64_t tokens = 0;        // of its rows
  bool stops = false;        // some rank wants to stop
  PairMetrics pairs{};       // stage dpo: means over the micro-batches
  std::vector<std::vector<int64_t>> rows;
};

// As HF's Trainer evaluates: the mean over the rows of the mean loss of their batch's labels.
struct Evaluation {
  double loss = 0;
  int64_t rows = 0;
  PairMetrics pairs{};  // stage dpo: means over the rows
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
  // Collective: every rank has all rows, and takes every world-th batch. `progress`: rounds done and all.
  Evaluation evaluate(const std::vector<TuningRow>& rows, const std::function<void(uint64_t, uint64_t)>& progress = {});
  // Collective; stage dpo with a reference: what the model says of its rows and of these before the first step, adapters left out.
  void refer(std::vector<TuningRow>* more, const std::function<void(uint64_t, uint64_t)>& progress = {});

  // What a stopped run needs to continue bit for bit, by name: the trained parameters, and of each the optimizer's means. Dropout needs
  // nothing: its random numbers are those of the step. Collective: whole at rank 0, nothing elsewhere.
  std::vector<NamedTensor> state();
  std::vector<NamedShape> state_shapes() const;
  // Collective: rank 0 fills each tensor of the state, every rank gets what it holds. An Error of `fill` is every rank's.
  base::Status load_state(const std::function<base::Status(const NamedTensor&)>& fill);
  // The same of the trained parameters only.
  base::Status load_weights(const std::function<base::Status(const NamedTensor&)>& fill);
  // Continues after step `done` of a run with the same recipe and rows, whose state was loaded. Only once, and before the first step().
  void continue_after(int64_t done);

  // Collective: `use` runs on rank 0 while the whole model is there; its Error is every rank's.
  base::Status with_whole_model(const std::function<base::Status()>& use) { return parallel_->with_whole_model(use); }
  // The same with the trained parameters by name, and without the others: where those are sharded, rank 0 may lack the room for all.
  base::Status with_trained(const std::function<base::Status(const std::vector<NamedTensor>&)>& use);
  std::string describe() const { return parallel_->describe(); }
  parallel::MemoryUse memory() const { return parallel_->memory(); }

 private:
  using Batch = std::vector<const TuningRow*>;
  // The loss of a batch: a sum, and by how much it is to be divided. Of pairs: their mean, once.
  model::SummedLoss loss_of(const Batch& batch, PairMetrics* pairs);
  RowLogs pair_logs(const Batch& batch);
  Batch batch_of(const std::vector<int64_t>& places) const;
  void learn(const std::vector<std::vector<int64_t>>& batches, StepReport* report);
  void add_up(StepReport* report, bool wants_to_stop);
  at::Tensor over_ranks(at::Tensor numbers, std::string_view label);  // their sums; numbers of the host, and back there

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
