#include "engine/tuning/fine_tuning.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include <optional>

#include "engine/autocast.h"
#include "engine/optim/norm.h"
#include "engine/require.h"
#include "tune/recipe/steps.h"

namespace phalanx::engine::tuning {
namespace {

constexpr uint64_t kSeedStride = 1'000'003;  // between the seeds of two runs' steps

// Of a parameter by its name: biases and norms do not decay.
bool decays(const std::string& name) { return !name.ends_with("bias") && name.find("norm") == std::string::npos; }

}  // namespace

RowOrder::RowOrder(int64_t rows, int64_t batch, int64_t accumulate, uint64_t seed)
    : rows_(rows), batch_(batch), accumulate_(accumulate), seed_(seed) {}

std::vector<std::vector<int64_t>> RowOrder::next_step() {
  if (done_ == static_cast<int64_t>(order_.size())) {
    at::Generator generator = at::detail::createCPUGenerator();
    generator.set_current_seed(seed_ + static_cast<uint64_t>(epoch_++));
    const at::Tensor permutation = at::randperm(rows_, generator, at::TensorOptions().dtype(at::kLong));
    order_.assign(permutation.data_ptr<int64_t>(), permutation.data_ptr<int64_t>() + rows_);
    done_ = 0;
  }
  std::vector<std::vector<int64_t>> out;
  for (int64_t i = 0; i < accumulate_ && done_ < rows_; ++i) {
    const int64_t end = std::min(done_ + batch_, rows_);
    out.emplace_back(order_.begin() + done_, order_.begin() + end);
    done_ = end;
  }
  return out;
}

double RowOrder::epochs() const {
  const auto batches = [&](int64_t rows) { return (rows + batch_ - 1) / batch_; };
  if (epoch_ == 0) return 0;
  return static_cast<double>(epoch_ - 1) + static_cast<double>(batches(done_)) / static_cast<double>(batches(rows_));
}

FineTuning::FineTuning(Decoder decoder, const tune::Recipe& recipe, std::vector<TuningRow> rows, int64_t pad,
                       comm::Group* group)
    : decoder_(std::move(decoder)),
      recipe_(recipe),
      group_(group),
      rows_(std::move(rows)),
      pad_(pad),
      steps_(tune::total_steps(recipe, static_cast<int64_t>(rows_.size()), world())),
      order_(static_cast<int64_t>(rows_.size()), recipe.per_device_train_batch_size,
             recipe.gradient_accumulation_steps * world(), static_cast<uint64_t>(recipe.data_seed.value_or(recipe.seed))) {
  require(!rows_.empty(), "there are no rows to learn from");
  int64_t elements = 0;
  for (const at::Tensor& value : decoder_->parameters()) elements += value.requires_grad() ? value.numel() : 0;
  require(elements > 0, "no parameter is to be trained");
  gradients_ = group_ ? group_->window(elements, at::kFloat) : at::zeros({elements});
  std::vector<optim::Row> trained;
  int64_t place = 0;
  for (auto& item : decoder_->named_parameters()) {
    at::Tensor& value = item.value();
    if (!value.requires_grad()) continue;
    at::Tensor gradient = gradients_.narrow(0, place, value.numel());
    place += value.numel();
    value.mutable_grad() = gradient.view(value.sizes());
    names_.push_back(item.key());
    trained.push_back({value.detach().view({-1}), gradient, {}, {{0, value.numel(), decays(item.key()) ? 0 : 1}}});
  }
  optimizer_ =
      std::make_unique<optim::AdamW>(std::move(trained), std::vector<optim::Group>{{"decayed", 1, recipe.weight_decay}, {"plain", 1, 0}},
                                     optim::AdamWOptions{recipe.adam_beta1, recipe.adam_beta2, recipe.adam_epsilon});
  decoder_->train();
}

// Padded on the right to the longest row, which changes nothing but rounding.
model::SummedLoss FineTuning::loss_of(const std::vector<int64_t>& batch) {
  size_t longest = 2;
  for (int64_t row : batch) longest = std::max(longest, rows_[static_cast<size_t>(row)].ids.size());
  const auto options = at::TensorOptions().dtype(at::kLong);
  const std::vector<int64_t> shape{static_cast<int64_t>(batch.size()), static_cast<int64_t>(longest)};
  at::Tensor tokens = at::full(shape, pad_, options), labels = at::full(shape, model::GptImpl::kNoTarget, options);
  for (size_t i = 0; i < batch.size(); ++i) {
    const TuningRow& row = rows_[static_cast<size_t>(batch[i])];
    std::copy(row.ids.begin(), row.ids.end(), tokens.data_ptr<int64_t>() + i * longest);
    std::copy(row.labels.begin(), row.labels.end(), labels.data_ptr<int64_t>() + i * longest);
  }
  std::optional<AutocastScope> rounded;
  if (recipe_.bf16) rounded.emplace(at::Device(at::kCPU), AutocastState{true, at::kBFloat16});
  return decoder_->loss(tokens, labels);
}

// Of all ranks: gradients, loss, and whether one wants to stop.
void FineTuning::add_up(StepReport* report, bool wants_to_stop) {
  report->stops = wants_to_stop;
  if (world() == 1) return;
  at::Tensor numbers = at::tensor({report->loss, wants_to_stop ? 1.0 : 0.0}, at::kDouble);
  group_->all_reduce(numbers, comm::Reduction::kSum, "loss");
  report->loss = numbers[0].item<double>();
  report->stops = numbers[1].item<double>() > 0;
  group_->all_reduce(gradients_, comm::Reduction::kSum, "gradients");
}

StepReport FineTuning::step(bool wants_to_stop) {
  StepReport out;
  out.rows = order_.next_step();
  for (const auto& batch : out.rows)
    for (int64_t row : batch) {
      const std::vector<int64_t>& labels = rows_[static_cast<size_t>(row)].labels;
      out.tokens += static_cast<int64_t>(labels.size());
      out.labels += static_cast<int64_t>(labels.size()) - std::count(labels.begin(), labels.end(), model::GptImpl::kNoTarget);
    }
  gradients_.zero_();
  for (size_t i = static_cast<size_t>(rank()); i < out.rows.size(); i += static_cast<size_t>(world())) {
    // Dropout draws from this generator: a resumed run drops what the first one would have dropped, on any number of ranks.
    at::manual_seed((static_cast<uint64_t>(recipe_.seed) * kSeedStride + static_cast<uint64_t>(done_)) * kSeedStride + i);
    model::SummedLoss loss = loss_of(out.rows[i]);
    if (loss.targets == 0) continue;
    at::Tensor share = loss.sum / static_cast<double>(std::max<int64_t>(out.labels, 1));
    share.backward();
    out.loss += share.item<double>();
  }
  add_up(&out, wants_to_stop);
  out.gradient_norm = std::sqrt(optim::sum_of_squares(gradients_));
  out.rate = tune::rate_at(recipe_, done_++, steps_);
  optimizer_->step(out.rate, optim::clip_scale(out.gradient_norm, recipe_.max_grad_norm));
  return out;
}

std::vector<NamedTensor> FineTuning::state() const {
  std::vector<NamedTensor> out;
  for (size_t i = 0; i < names_.size(); ++i) out.push_back({names_[i], optimizer_->rows()[i].params});
  for (const optim::NamedState& one : optimizer_->states())
    for (size_t i = 0; i < names_.size(); ++i) out.push_back({one.name + "." + names_[i], one.rows[i]});
  return out;
}

void FineTuning::continue_after(int64_t done) {
  require(done_ == 0 && done >= 0 && done <= steps_, "the run has {} steps, and {} are said to be done", steps_, done);
  while (done_ < done) {
    order_.next_step();
    ++done_;
  }
  optimizer_->steps_done = done;
}

}  // namespace phalanx::engine::tuning
