// The Trainer before and after its loop: building, resuming, saving, the sample.
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <cstdio>

#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/comm/fingerprint.h"
#include "engine/data/batch_share.h"
#include "engine/data/tokenizer.h"
#include "engine/train/report/throughput.h"
#include "engine/train/trainer.h"
#include "os/files.h"

namespace phalanx::engine::train {
namespace {

// The part of the config that has to be equal on all ranks: paths may differ between hosts.
uint64_t fingerprint(const Config& config) {
  base::Json json = to_json(config);
  for (const char* path : {"out", "data.corpus", "data.files", "data.validation_files"}) json.erase(path);
  comm::Fingerprint print;
  print.add(base::to_text(json));
  return print.value();
}

constexpr int64_t kStateVersion = 1;  // of the common state in a checkpoint

}  // namespace

base::Result<std::unique_ptr<Trainer>> Trainer::begin(const Config& config, comm::Group& group, Progress& progress,
                                                      const checkpoint::Attempt& attempt) {
  std::unique_ptr<Trainer> trainer(new Trainer(config, group, progress));
  TRY(comm::require_same(group, "the config", fingerprint(config)));
  TRY(trainer->build());
  TRY(trainer->resume(attempt));
  const RunFacts facts = trainer->facts();
  TRY(comm::agree(group, progress.begin(config.out, trainer->steps_done(), trainer->data_.steps, facts), "opening the log"));
  trainer->announce(facts);
  return trainer;
}

base::Status Trainer::build() {
  if (config_.train.deterministic == "on") at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  auto open = [&]() -> base::Status {
    TRY_ASSIGN(precision_, precision_of(config_, group_.device()));
    TRY_ASSIGN(data_, open_data(config_, group_.rank(), group_.world()));
    return base::ok();
  };
  TRY(comm::agree(group_, open(), "opening the data"));
  TRY(comm::require_same(group_, "the data", data_.set.fingerprint()));
  TRY(comm::require_same(group_, "the validation data", data_.validation ? data_.set.validation->fingerprint() : 0));
  gpt_ = make_model(config_, data_.vocabulary);
  const bool by_parts = config_.parallel.mode == "zero3";
  if (!by_parts) gpt_->init(static_cast<uint64_t>(config_.seed));
  gpt_->to(group_.device());
  TRY_ASSIGN(parallel_, parallel::DataParallel::wrap(*gpt_, group_, parallel_options(config_, precision_, group_.device())));
  // Stage 3 never holds the whole model, so it gets its values only now, one part after the other.
  if (by_parts) parallel_->initialise([&] { gpt_->init(static_cast<uint64_t>(config_.seed)); });
  optimizer_ = make_optimizer(config_, parallel_->rows(), parallel_->groups());
  early_stop_.patience = config_.validation.patience;
  early_stop_.min_delta = config_.validation.min_delta;
  return base::ok();
}

base::Status Trainer::resume(const checkpoint::Attempt& attempt) {
  TRY_ASSIGN(saving_, Saving::open(config_, group_, progress_, attempt));
  state_of_data_ = data_.training->state();
  TRY_ASSIGN(base::Json state, saving_->load(*parallel_, *optimizer_));
  if (state.is_null()) return base::ok();
  return comm::agree(group_, restore(state), "restoring the state of the checkpoint");
}

base::Json Trainer::state() const {
  base::Json state = {{"program", "phalanx-train"},          {"version", kStateVersion}, {"ranks", group_.world()},
                      {"config", to_json(config_)},          {"data", state_of_data_},   {"loss_scaler", scaler_.state()},
                      {"since_best", early_stop_.since_best}};
  if (validation_loss_) state["validation_loss"] = *validation_loss_;
  if (std::isfinite(early_stop_.best)) state["best_loss"] = early_stop_.best;
  return state;
}

base::Status Trainer::restore(const base::Json& state) {
  if (base::get_int(state, "version") != kStateVersion)
    return base::fail(base::ErrorKind::kConfig, "the checkpoint does not contain its position in the data")
        .because("it was written by an earlier version of phalanx-train")
        .with_hint("extract its model with phalanx-train merge, or restart with checkpoint.existing=replace");
  TRY(data_.training->restore(state.value("data", base::Json::object())));
  state_of_data_ = data_.training->state();
  TRY(scaler_.restore(state.value("loss_scaler", base::Json::object())));
  early_stop_.since_best = base::get_int(state, "since_best").value_or(0);
  if (auto best = base::get_number(state, "best_loss")) early_stop_.best = *best;
  validation_loss_ = base::get_number(state, "validation_loss");
  return base::ok();
}

// Collective.
RunFacts Trainer::facts() {
  RunFacts facts;
  facts.ranks = group_.world();
  facts.data_workers = config_.data.workers;
  facts.sharded = parallel_->options().stage != parallel::Stage::kDdp;
  facts.tensorboard = config_.metrics.tensorboard == "on";
  const parallel::MemoryUse use = parallel_->memory();
  facts.parameter_bytes = use.parameters;
  facts.gradient_bytes = use.gradients;
  facts.carrier_bytes = use.carriers;
  for (const optim::NamedState& state : optimizer_->states())
    for (const at::Tensor& row : state.rows) facts.optimizer_bytes += static_cast<int64_t>(row.nbytes());
  if (config_.metrics.mfu == "off") return facts;
  const model::GptShape& shape = gpt_->shape;
  facts.flops_per_token = flops_per_token(parallel_->parameter_count(), shape.layers, shape.width, shape.context);
  const at::ScalarType dtype = precision_.autocast != at::kFloat ? precision_.autocast : precision_.weights;
  const at::Device device = group_.device();
  const double peak = device.is_cpu() ? measure_cpu(dtype) : gpu_peak(gpu_name(device.index()), dtype).value_or(std::nan(""));
  const double sum = sum_over_ranks(peak, "peak of all devices");
  facts.peak_flops = std::isfinite(sum) ? sum : 0;  // one rank's is not known
  return facts;
}

// What will happen, before it does: whoever reads it can stop a run that was meant otherwise.
void Trainer::announce(const RunFacts& facts) const {
  const auto million = static_cast<double>(parallel_->parameter_count()) / 1e6;
  uint64_t bytes = 0;
  for (const data::FileOfSet& file : data_.set.files) bytes += file.bytes;
  progress_.note(fmt::format("model: {:.2f} M parameters, vocabulary {}; {}; {}", million, data_.vocabulary, parallel_->describe(),
                             config_.train.precision));
  auto size = [](int64_t held) { return base::format_bytes(static_cast<uint64_t>(held)); };
  progress_.note(facts.carrier_bytes > 0
                     ? fmt::format("memory of a rank: parameters {}, gradients {}, buffers that send gradients {}, optimizer {}",
                                   size(facts.parameter_bytes), size(facts.gradient_bytes), size(facts.carrier_bytes),
                                   size(facts.optimizer_bytes))
                     : fmt::format("memory of a rank: parameters {}, gradients {}, optimizer {}", size(facts.parameter_bytes),
                                   size(facts.gradient_bytes), size(facts.optimizer_bytes)));
  if (facts.peak_flops > 0)
    progress_.note(fmt::format("mfu is relative to {:.4g} TFLOPS, {}", facts.peak_flops / 1e12,
                               group_.device().is_cpu() ? "measured with matrix products on this machine" : "the peak in the data sheet"));
  else if (config_.metrics.mfu == "on")
    progress_.note(fmt::format("no mfu: the peak of {} is not known", base::quote(gpu_name(group_.device().index()))));
  progress_.note(
      fmt::format("data: {} in {} file{}", base::format_bytes(bytes), data_.set.files.size(), data_.set.files.size() == 1 ? "" : "s"));
  const data::BatchShare share{config_.train.batch / group_.world() / config_.train.accumulate, group_.world(), config_.train.accumulate};
  progress_.note(data::describe(share, config_.model.context));
  if (steps_done() > 0 && steps_done() >= data_.steps)
    progress_.note(fmt::format("nothing to train: the checkpoint is at step {}, and the configuration ends at step {}; raise {}",
                               steps_done(), data_.steps, config_.train.epochs > 0 ? "train.epochs" : "train.steps"));
  else if (steps_done() > 0) progress_.note(fmt::format("resumed after step {} of {}", steps_done(), data_.steps));
}

base::Status Trainer::save() {
  progress_.phase("save");
  TRY(saving_->save(*parallel_, *optimizer_, state(), std::exchange(best_, std::nullopt)));
  progress_.phase("train");
  return base::ok();
}

base::Status Trainer::write_sample() {
  const Config::Sample& s = config_.sample;
  if (s.bytes == 0) return base::ok();
  if (data_.vocabulary != data::ByteTokenizer::kVocabulary) {
    progress_.note("no sample: only byte tokens can be shown as text");
    return base::ok();
  }
  // In stage 3 all ranks have to go through the model together; elsewhere rank 0 is enough.
  if (group_.rank() != 0 && parallel_->options().stage != parallel::Stage::kZero3) return base::ok();
  progress_.phase("sample");
  gpt_->eval();
  std::vector<int64_t> ids =
      model::generate(gpt_, data::ByteTokenizer::encode(s.prompt), {s.bytes, s.temperature, s.top_k, static_cast<uint64_t>(config_.seed)});
  parallel_->check();
  if (group_.rank() != 0) return base::ok();
  const std::string text = s.prompt + data::ByteTokenizer::decode(ids);
  TRY(os::write_file_atomic(config_.out + "/sample.txt", text, 0644));
  progress_.note(base::counted("sample of {} bytes, also in {}/sample.txt:", s.bytes, config_.out));
  for (std::string_view line : base::split_lines(text)) std::printf("  %s\n", base::printable(line, 4096).c_str());
  std::fflush(stdout);
  return base::ok();
}

}  // namespace phalanx::engine::train
