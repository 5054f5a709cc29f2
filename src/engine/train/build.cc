#include "engine/train/build.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/try.h"
#include "engine/optim/adamw.h"
#include "engine/optim/lion.h"
#include "engine/optim/sgd.h"
#include "engine/train/data_settings.h"

namespace phalanx::engine::train {
namespace {

base::Result<int64_t> vocabulary_of(const Config& config, const data::OpenedSet& set) {
  const auto known = static_cast<int64_t>(set.vocabulary);
  const int64_t wanted = config.model.vocabulary;
  if (known == 0 && wanted == 0)
    return base::fail(base::ErrorKind::kConfig, "the data does not specify the size of its vocabulary").with_hint("set model.vocabulary");
  if (wanted != 0 && wanted < known)
    return base::fail(base::ErrorKind::kConfig, fmt::format("model.vocabulary {} is too small for the data", wanted))
        .because(fmt::format("its largest token is {}", known - 1))
        .with_hint(fmt::format("model.vocabulary={}", known));
  return wanted != 0 ? wanted : known;
}

}  // namespace

base::Result<TrainingData> open_data(const Config& config, int rank, int world) {
  TrainingData data;
  TRY_ASSIGN(data.set, data::open_set(set_options(config)));
  TRY_ASSIGN(data.vocabulary, vocabulary_of(config, data.set));
  TRY_ASSIGN(data::LoaderOptions options, loader_options(config, rank, world));
  auto training =
      data.set.training ? data::StepLoader::create(data.set.training, options) : data::StepLoader::create(data.set.stream, options);
  if (!training.ok()) {
    base::Error error = std::move(training.error()).within("opening the training data");
    if (error.hint.empty()) error.hint = "lower model.context or train.batch, or add data";
    return error;
  }
  data.training = *std::move(training);
  data.steps = config.train.steps;
  if (config.train.epochs > 0) {
    auto per_epoch = data.training->steps_per_epoch();
    if (!per_epoch)
      return base::fail(base::ErrorKind::kConfig, "train.epochs is set, and the length of a stream is not known")
          .with_hint("set train.steps, and train.epochs=0");
    data.steps = *per_epoch * config.train.epochs;
  }
  if (config.validation.every == 0 || !data.set.validation) return data;
  options.plan.shuffle = false;
  options.plan.remainder = data::Remainder::kKeep;
  options.accumulate = 1;
  auto validation = data::StepLoader::create(data.set.validation, options);
  if (!validation.ok())
    return std::move(validation.error())
        .within("opening the validation data")
        .with_hint("raise data.validation, or turn it off with validation.every=0");
  data.validation = *std::move(validation);
  data.validation_steps = std::min(config.validation.batches, data.validation->steps_per_epoch().value_or(config.validation.batches));
  return data;
}

model::Gpt make_model(const Config& config, int64_t vocabulary) {
  const Config::Model& m = config.model;
  model::GptExecution execution;
  execution.kernels = m.kernels == "fused" ? model::Kernels::kFused : model::Kernels::kPlain;
  execution.recompute_blocks = m.activation_checkpointing == "blocks";
  return model::Gpt(model::GptShape{vocabulary, m.context, m.layers, m.heads, m.width, m.dropout}, execution);
}

parallel::Options parallel_options(const Config& config, const Precision& precision, at::Device device) {
  const Config::Parallel& p = config.parallel;
  parallel::Options options;
  for (auto stage : {parallel::Stage::kDdp, parallel::Stage::kZero1, parallel::Stage::kZero2, parallel::Stage::kZero3})
    if (name_of(stage) == p.mode) options.stage = stage;
  options.reduce = parallel::Reduce::kSum;  // the loss is divided by the targets of all ranks
  options.bucket_bytes = static_cast<int64_t>(p.bucket_mb * (1 << 20));
  options.first_bucket_bytes = std::min(options.first_bucket_bytes, options.bucket_bytes);
  options.share_parameters = p.share_parameters == "auto" && options.stage != parallel::Stage::kZero3 && device.is_cpu();
  options.compute = precision.weights;
  options.deterministic = config.train.deterministic == "on";
  options.live_units = static_cast<int>(p.live_units);
  options.prefetch = p.live_units > 1;
  options.persistent_elements = p.persistent_elements;
  options.offload = p.offload == "on";
  options.broadcast_buffers = false;  // our models have none that training changes
  options.groups = {{"decayed", 1, config.optimizer.weight_decay}, {"not decayed", 1, 0}};
  options.group_of = [](std::string_view, const at::Tensor& value) { return value.dim() > 1 ? 0 : 1; };
  return options;
}

std::unique_ptr<optim::Optimizer> make_optimizer(const Config& config, std::vector<optim::Row> rows, std::vector<optim::Group> groups) {
  const Config::Optimizer& o = config.optimizer;
  if (o.name == "sgd") {
    optim::SgdOptions options;
    options.momentum = o.momentum;
    return std::make_unique<optim::Sgd>(std::move(rows), std::move(groups), options);
  }
  if (o.name == "lion") return std::make_unique<optim::Lion>(std::move(rows), std::move(groups), optim::LionOptions{o.beta1, o.beta2});
  return std::make_unique<optim::AdamW>(std::move(rows), std::move(groups), optim::AdamWOptions{o.beta1, o.beta2, o.epsilon});
}

optim::Schedule make_schedule(const Config& config, int64_t steps) {
  const Config::Optimizer& o = config.optimizer;
  optim::Schedule schedule;
  schedule.curve = optim::curve_of(o.schedule).value_or(optim::Curve::kCosine);
  schedule.lr = o.lr;
  schedule.min_lr = o.min_lr;
  schedule.warmup = o.warmup_ratio > 0 ? optim::warmup_steps(o.warmup_ratio, steps) : o.warmup;
  schedule.steps = steps;
  return schedule;
}

}  // namespace phalanx::engine::train
