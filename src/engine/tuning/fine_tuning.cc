#include "engine/tuning/fine_tuning.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "base/try.h"
#include "engine/autocast.h"
#include "engine/comm/make_group.h"
#include "engine/require.h"
#include "engine/to_device.h"
#include "tune/recipe/steps.h"

namespace phalanx::engine::tuning {
namespace {

constexpr uint64_t kSeedStride = 1'000'003;  // between the seeds of two runs' steps

// Of a parameter by its name: biases and norms do not decay.
bool decays(std::string_view name) { return !name.ends_with("bias") && name.find("norm") == std::string::npos; }

parallel::Options options_of(const tune::Recipe& recipe, int64_t width, at::Device device) {
  parallel::Options out;
  out.offload = recipe.zero.offload && !device.is_cpu();
  out.stage = static_cast<parallel::Stage>(recipe.zero.stage);
  out.reduce = parallel::Reduce::kSum;
  if (recipe.zero.bucket_elements) {
    constexpr auto kBytes = static_cast<int64_t>(sizeof(float));
    out.bucket_bytes = std::min(out.bucket_bytes, std::min(*recipe.zero.bucket_elements, out.bucket_bytes) * kBytes);
    out.first_bucket_bytes = std::min(out.first_bucket_bytes, out.bucket_bytes);
  }
  out.persistent_elements = recipe.zero.persistent_elements.value_or(10 * width);
  out.prefetch = recipe.zero.prefetch;
  out.groups = {{"decayed", 1, recipe.weight_decay}, {"plain", 1, 0}};
  out.group_of = [](std::string_view name, const at::Tensor&) { return decays(name) ? 0 : 1; };
  if (recipe.loraplus_lr_ratio <= 0) return out;
  // LoRA+ (arXiv 2402.12354).
  out.groups.push_back({"lora_B", recipe.loraplus_lr_ratio, recipe.weight_decay});
  out.group_of = [](std::string_view name, const at::Tensor&) { return name.find("lora_B") != name.npos ? 2 : decays(name) ? 0 : 1; };
  return out;
}

// Rows end to end, without padding: the sums are those of padded rows.
class Layout {
 public:
  // `apart`: the examples of a packed row do not see each other.
  void add(const std::vector<int64_t>& ids, const std::vector<int64_t>& labels, const std::vector<int64_t>& starts, bool apart) {
    const auto before = static_cast<int64_t>(ids_.size());
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    labels_.insert(labels_.end(), labels.begin(), labels.end());
    rows_.push_back(static_cast<int64_t>(ids_.size()));
    if (apart)
      for (int64_t start : starts) sequences_.push_back(before + start);
    sequences_.push_back(rows_.back());
    packed_ |= !starts.empty();
    add_positions(ids.size(), starts);
  }
  Sequences sequences() const {
    Sequences out{at::tensor(ids_, at::kLong), sequences_};
    if (packed_ && sequences_.size() == rows_.size()) out.positions = positions_;
    if (sequences_.size() != rows_.size()) out.label_starts = rows_;
    return out;
  }
  at::Tensor labels() const { return at::tensor(labels_, at::kLong); }

 private:
  void add_positions(size_t count, const std::vector<int64_t>& starts) {
    size_t next = 0;
    int64_t position = 0;
    for (size_t i = 0; i < count; ++i) {
      if (next < starts.size() && starts[next] == static_cast<int64_t>(i)) {
        position = 0;
        ++next;
      }
      positions_.push_back(position++);
    }
  }
  std::vector<int64_t> ids_, labels_, positions_, rows_{0}, sequences_{0};
  bool packed_ = false;
};

}  // namespace

RowOrder::RowOrder(int64_t rows, int64_t batch, int64_t accumulate, std::optional<uint64_t> seed)
    : rows_(rows), batch_(batch), accumulate_(accumulate), seed_(seed) {}

std::vector<std::vector<int64_t>> RowOrder::next_step() {
  if (done_ == static_cast<int64_t>(order_.size())) {
    at::Generator generator = at::detail::createCPUGenerator();
    generator.set_current_seed(seed_.value_or(0) + static_cast<uint64_t>(epoch_++));
    const auto options = at::TensorOptions().dtype(at::kLong);
    const at::Tensor permutation = seed_ ? at::randperm(rows_, generator, options) : at::arange(rows_, options);
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

FineTuning::FineTuning(Decoder decoder, const tune::Recipe& recipe, std::vector<TuningRow> rows, comm::Group* group,
                       const std::function<void()>& fill)
    : decoder_(std::move(decoder)),
      recipe_(recipe),
      alone_(group ? nullptr : comm::make_single_rank(at::kCPU)),
      group_(group ? *group : *alone_),
      rows_(std::move(rows)),
      steps_(tune::total_steps(recipe, static_cast<int64_t>(rows_.size()), group_.world())),
      order_(static_cast<int64_t>(rows_.size()), recipe.per_device_train_batch_size, recipe.gradient_accumulation_steps * group_.world(),
             recipe.disable_shuffling ? std::nullopt : std::optional(static_cast<uint64_t>(recipe.data_seed.value_or(recipe.seed)))) {
  require(!rows_.empty(), "there are no rows to learn from");
  for (const TuningRow& row : rows_) {
    require(!row.ids.empty(), "a row has no tokens");
    require(recipe.stage != "dpo" || !row.rejected_ids.empty(), "a pair lacks its second answer");
  }
  auto wrapped = parallel::DataParallel::wrap(*decoder_, group_, options_of(recipe, decoder_->config.hidden, group_.device()));
  if (!wrapped.ok()) throw std::invalid_argument(wrapped.error().message + ": " + wrapped.error().cause);
  parallel_ = std::move(*wrapped);
  if (fill) parallel_->initialise(fill);
  optimizer_ = std::make_unique<optim::AdamW>(parallel_->rows(), parallel_->groups(),
                                              optim::AdamWOptions{recipe.adam_beta1, recipe.adam_beta2, recipe.adam_epsilon});
  decoder_->train(recipe.stage != "dpo");  // which has no dropout
}

FineTuning::Batch FineTuning::batch_of(const std::vector<int64_t>& places) const {
  Batch out;
  for (int64_t place : places) out.push_back(&rows_[static_cast<size_t>(place)]);
  return out;
}

model::SummedLoss FineTuning::loss_of(const Batch& batch, PairMetrics* pairs) {
  if (recipe_.stage == "dpo") {
    std::vector<double> chosen, rejected;
    for (const TuningRow* row : batch) {
      chosen.push_back(row->chosen_reference);
      rejected.push_back(row->rejected_reference);
    }
    const auto as_tensor = [&](const std::vector<double>& values) { return to_device(at::tensor(values).to(at::kFloat), group_.device()); };
    const PairLoss loss = pair_loss(recipe_, split_pairs(pair_logs(batch), recipe_), as_tensor(chosen), as_tensor(rejected));
    *pairs = loss.metrics;
    return {loss.mean, 1};
  }
  Layout layout;
  for (const TuningRow* row : batch) layout.add(row->ids, row->labels, row->starts, recipe_.neat_packing);
  const AutocastScope rounded(group_.device(), {recipe_.bf16, at::kBFloat16});
  return decoder_->loss(layout.sequences(), layout.labels());
}

RowLogs FineTuning::pair_logs(const Batch& batch) {
  Layout layout;
  for (const TuningRow* row : batch) layout.add(row->ids, row->labels, {}, false);
  for (const TuningRow* row : batch) layout.add(row->rejected_ids, row->rejected_labels, {}, false);
  const AutocastScope rounded(group_.device(), {recipe_.bf16, at::kBFloat16});
  return decoder_->log_probabilities(layout.sequences(), layout.labels());
}

at::Tensor FineTuning::over_ranks(at::Tensor numbers, std::string_view label) {
  if (group_.world() == 1) return numbers;
  numbers = to_device(numbers, group_.device());
  group_.all_reduce(numbers, comm::Reduction::kSum, label);
  return numbers.to(at::kCPU);
}

// Of all ranks: loss, and whether one wants to stop.
void FineTuning::add_up(StepReport* report, bool wants_to_stop) {
  report->stops = wants_to_stop;
  if (group_.world() == 1) return;
  std::vector<double> mine{report->loss, wants_to_stop ? 1.0 : 0.0};
  mine.insert(mine.end(), report->pairs.begin(), report->pairs.end());
  const at::Tensor numbers = over_ranks(at::tensor(mine, at::kDouble), "loss");
  report->loss = numbers[0].item<double>();
  report->stops = numbers[1].item<double>() > 0;
  for (size_t i = 0; i < report->pairs.size(); ++i) report->pairs[i] = numbers[static_cast<int64_t>(i) + 2].item<double>();
}

// All ranks make as many rounds. One without a batch adds nothing; where parameters are sharded it computes as the others do, which need
// its shares.
void FineTuning::learn(const std::vector<std::vector<int64_t>>& batches, StepReport* report) {
  const auto world = static_cast<size_t>(group_.world()), rounds = (batches.size() + world - 1) / world;
  const bool always = recipe_.zero.stage == 3;
  const auto parts =
      static_cast<double>(recipe_.stage == "dpo" ? static_cast<int64_t>(batches.size()) : std::max<int64_t>(report->labels, 1));
  std::vector<at::Tensor> shares;  // read when all is under way: reading one waits for it
  for (size_t round = 0; round < rounds; ++round) {
    const size_t place = round * world + static_cast<size_t>(group_.rank());
    const bool has_batch = place < batches.size();
    at::Tensor share;
    if (has_batch || always) {
      // Dropout draws from this generator: a resumed run drops what the first one would have dropped, on any number of ranks.
      at::manual_seed((static_cast<uint64_t>(recipe_.seed) * kSeedStride + static_cast<uint64_t>(done_)) * kSeedStride + place);
      PairMetrics pairs{};
      const model::SummedLoss loss = loss_of(batch_of(batches[has_batch ? place : 0]), &pairs);
      if (loss.targets > 0 || always) share = loss.sum * (has_batch ? 1 / parts : 0.0);
      for (size_t i = 0; i < pairs.size() && has_batch; ++i) report->pairs[i] += pairs[i] / parts;
    }
    parallel_->backward(share, round + 1 == rounds);
    if (share.defined()) shares.push_back(share.detach());
  }
  for (const at::Tensor& share : shares) report->loss += share.item<double>();
}

StepReport FineTuning::step(bool wants_to_stop) {
  StepReport out;
  out.rows = order_.next_step();
  for (const auto& batch : out.rows)
    for (int64_t place : batch) {
      const TuningRow& row = rows_[static_cast<size_t>(place)];
      out.tokens += static_cast<int64_t>(row.ids.size() + row.rejected_ids.size());
      for (const auto* labels : {&row.labels, &row.rejected_labels})
        out.labels += static_cast<int64_t>(labels->size()) - std::count(labels->begin(), labels->end(), model::GptImpl::kNoTarget);
    }
  learn(out.rows, &out);
  add_up(&out, wants_to_stop);
  out.rate = tune::rate_at(recipe_, done_++, steps_);
  out.gradient_norm = parallel_->step(*optimizer_, {.lr = out.rate, .max_norm = recipe_.max_grad_norm}).norm;
  return out;
}

std::vector<NamedTensor> FineTuning::state() {
  std::vector<NamedTensor> out;
  const auto add = [&](const std::string& prefix, const std::vector<at::Tensor>& per_row) {
    for (const parallel::Span& one : parallel_->gathered(per_row)) out.push_back({prefix + one.name, one.data.view(one.shape)});
  };
  add("", {});
  for (const optim::NamedState& one : optimizer_->states()) add(one.name + ".", one.rows);
  return group_.rank() == 0 ? out : std::vector<NamedTensor>();
}

base::Status FineTuning::with_trained(const std::function<base::Status(const std::vector<NamedTensor>&)>& use) {
  std::vector<NamedTensor> trained;
  for (const parallel::Span& one : parallel_->gathered({})) trained.push_back({one.name, one.data.view(one.shape)});
  return comm::agree(group_, group_.rank() == 0 ? use(trained) : base::ok(), "writing on rank 0");
}

std::vector<NamedShape> FineTuning::state_shapes() const {
  std::vector<NamedShape> out;
  for (const char* prefix : {"", "exp_avg.", "exp_avg_sq."})
    for (const auto& [name, shape] : parallel_->shapes()) out.push_back({prefix + name, shape});
  return out;
}

base::Status FineTuning::load_weights(const std::function<base::Status(const NamedTensor&)>& fill) {
  TRY(parallel_->scattered({}, [&](const parallel::Span& one) { return fill({one.name, one.data.view(one.shape)}); }));
  parallel_->loaded();
  return base::ok();
}

base::Status FineTuning::load_state(const std::function<base::Status(const NamedTensor&)>& fill) {
  const auto load = [&](const std::string& prefix, const std::vector<at::Tensor>& per_row) {
    return parallel_->scattered(per_row, [&](const parallel::Span& one) { return fill({prefix + one.name, one.data.view(one.shape)}); });
  };
  TRY(load_weights(fill));
  for (const optim::NamedState& one : optimizer_->states()) TRY(load(one.name + ".", one.rows));
  return base::ok();
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
