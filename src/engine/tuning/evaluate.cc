// What a fine-tuning computes forward only: evaluation, and the log p of pairs before training.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "engine/tuning/fine_tuning.h"

namespace phalanx::engine::tuning {
namespace {

// Batches of neighbouring rows, every world-th of them this rank's. All ranks make as many rounds: where parameters are sharded, the others
// need this one's shares.
template <class Row, class Use>
void for_each_batch(std::vector<Row*> rows, int64_t size, const comm::Group& group, const Use& use) {
  const auto count = static_cast<int64_t>(rows.size()), batches = (count + size - 1) / size;
  for (int64_t first = 0; first < batches; first += group.world()) {
    const bool has_batch = first + group.rank() < batches;
    const int64_t begin = (has_batch ? first + group.rank() : first) * size, end = std::min(begin + size, count);
    use(std::vector<Row*>(rows.begin() + begin, rows.begin() + end), has_batch, std::min(first + group.world(), batches), batches);
  }
}

}  // namespace

Evaluation FineTuning::evaluate(const std::vector<TuningRow>& rows, const std::function<void(uint64_t, uint64_t)>& progress) {
  at::NoGradGuard no_grad;
  const bool was_training = decoder_->is_training();
  decoder_->eval();
  Batch all;
  for (const TuningRow& row : rows) all.push_back(&row);
  std::vector<double> sums(2 + kPairMetrics.size(), 0.0);  // of losses and of rows, then of metrics
  for_each_batch(all, recipe_.per_device_eval_batch_size, group_, [&](const Batch& batch, bool has_batch, int64_t done, int64_t count) {
    PairMetrics pairs{};
    const model::SummedLoss loss = loss_of(batch, &pairs);
    if (has_batch && loss.targets > 0) {
      const auto weight = static_cast<double>(batch.size());
      sums[0] += weight * loss.sum.item<double>() / static_cast<double>(loss.targets);
      sums[1] += weight;
      for (size_t i = 0; i < pairs.size(); ++i) sums[i + 2] += weight * pairs[i];
    }
    if (progress) progress(static_cast<uint64_t>(done), static_cast<uint64_t>(count));
  });
  decoder_->train(was_training);
  parallel_->check();
  const at::Tensor numbers = over_ranks(at::tensor(sums, at::kDouble), "evaluation");
  const double weights = std::max(numbers[1].item<double>(), 1.0);
  Evaluation out{numbers[0].item<double>() / weights, static_cast<int64_t>(rows.size())};
  for (size_t i = 0; i < out.pairs.size(); ++i) out.pairs[i] = numbers[static_cast<int64_t>(i) + 2].item<double>() / weights;
  return out;
}

void FineTuning::refer(std::vector<TuningRow>* more, const std::function<void(uint64_t, uint64_t)>& progress) {
  if (recipe_.stage != "dpo" || !has_reference(recipe_)) return;
  at::NoGradGuard no_grad;
  std::vector<TuningRow*> all;
  for (auto* rows : {&rows_, more})
    for (TuningRow& row : *rows) all.push_back(&row);
  at::Tensor found = at::zeros({static_cast<int64_t>(all.size()), 2}, at::kDouble);
  int64_t first = 0;
  decoder_->bypass_adapters(true);
  const int64_t size = recipe_.per_device_train_batch_size;
  for_each_batch(all, size, group_, [&](const std::vector<TuningRow*>& batch, bool has_batch, int64_t done, int64_t count) {
    const PairLogs logs = split_pairs(pair_logs({batch.begin(), batch.end()}), recipe_);
    const int64_t place = (first + group_.rank()) * size;
    for (size_t i = 0; i < batch.size() && has_batch; ++i) {
      const auto row = place + static_cast<int64_t>(i);
      found[row][0] = logs.chosen[static_cast<int64_t>(i)].item<double>();
      found[row][1] = logs.rejected[static_cast<int64_t>(i)].item<double>();
    }
    first += group_.world();
    if (progress) progress(static_cast<uint64_t>(done), static_cast<uint64_t>(count));
  });
  decoder_->bypass_adapters(false);
  parallel_->check();
  found = over_ranks(std::move(found), "references");
  const double* values = found.data_ptr<double>();
  for (size_t i = 0; i < all.size(); ++i) {
    all[i]->chosen_reference = values[2 * i];
    all[i]->rejected_reference = values[2 * i + 1];
  }
}

}  // namespace phalanx::engine::tuning
