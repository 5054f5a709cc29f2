// The Trainer before and after its loop: building, resuming, saving, the sample.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <cstdio>

#include "base/text.h"
#include "base/unicode.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/comm/fingerprint.h"
#include "engine/data/tokenizer.h"
#include "engine/train/data_settings.h"
#include "engine/train/snapshot.h"
#include "engine/train/trainer.h"
#include "os/files.h"

namespace engine::train {
namespace {

// The part of the config that has to be equal on all ranks: paths may differ between hosts.
uint64_t fingerprint(const Config& config) {
  base::Json json = to_json(config);
  json.erase("out");
  json.erase("data.corpus");
  comm::Fingerprint print;
  print.add(base::to_text(json));
  return print.value();
}

std::string checkpoint_folder(const Config& config) { return config.out + "/checkpoints"; }

}  // namespace

base::Result<std::unique_ptr<Trainer>> Trainer::create(const Config& config, comm::Group& group, Progress& progress) {
  TRY(require_plain_corpus(config));
  TRY_ASSIGN(data::Corpus corpus, data::Corpus::open(config.data.corpus));
  std::unique_ptr<Trainer> trainer(new Trainer(config, group, progress, std::move(corpus)));
  TRY(trainer->open_data());
  trainer->build_model();
  return trainer;
}

base::Status Trainer::open_data() {
  const int64_t parts = group_.world() * config_.train.accumulate;
  if (config_.train.batch % parts != 0)
    return base::fail(base::ErrorKind::kConfig, fmt::format("train.batch {} cannot be shared equally", config_.train.batch))
        .because(fmt::format("{} ranks × train.accumulate {} make {} parts", group_.world(), config_.train.accumulate, parts))
        .with_hint(fmt::format("train.batch={}", (config_.train.batch / parts + 1) * parts));
  const int64_t rows = config_.train.batch / group_.world();
  const std::string_view text = corpus_.text();
  const size_t cut = text.size() - static_cast<size_t>(static_cast<double>(text.size()) * config_.data.validation);

  data::SamplerOptions order{.samples = 0,
                             .world = group_.world(),
                             .rank = group_.rank(),
                             .shuffle = true,
                             .seed = static_cast<uint64_t>(config_.seed),
                             .drop_last = true};
  auto too_short = [&](std::string_view what, size_t bytes) {
    return base::fail(base::ErrorKind::kConfig, fmt::format("data.corpus is too short for {}", what))
        .because(
            fmt::format("{} bytes do not fill one batch of {} sequences of {} tokens", bytes, config_.train.batch, config_.model.context));
  };
  training_.emplace(text.substr(0, cut), config_.model.context, rows, order);
  if (training_->batches_per_epoch() == 0) return too_short("training", cut);
  if (config_.validation.every > 0 && config_.data.validation > 0) {
    order.shuffle = false;
    validation_.emplace(text.substr(cut), config_.model.context, rows, order);
    if (validation_->batches_per_epoch() == 0)
      return too_short("validation", text.size() - cut).with_hint("raise data.validation, or turn it off with validation.every=0");
  }
  return base::ok();
}

void Trainer::build_model() {
  const Config::Model& m = config_.model;
  gpt_ = model::Gpt(model::GptShape{data::ByteTokenizer::kVocabulary, m.context, m.layers, m.heads, m.width});
  gpt_->init(static_cast<uint64_t>(config_.seed));
  gpt_->to(group_.device());
  std::vector<parallel::NamedParam> params;
  for (auto& item : gpt_->named_parameters()) params.push_back({item.key(), item.value(), /*decay=*/item.value().dim() > 1});
  buckets_ = parallel::flatten(params);
  ddp_.emplace(buckets_, group_);
  const Config::Optimizer& o = config_.optimizer;
  std::vector<optim::Row> rows;
  for (const parallel::Bucket& bucket : buckets_)
    rows.push_back({bucket.params, bucket.grads, {}, {{0, bucket.params.numel(), bucket.decay ? 0 : 1}}});
  optimizer_.emplace(std::move(rows), std::vector<optim::Group>{{"decayed", 1, o.weight_decay}, {"plain", 1, 0}},
                     optim::AdamWOptions{o.beta1, o.beta2, o.epsilon});
}

base::Status Trainer::begin() {
  TRY(comm::require_same(group_, "the config", fingerprint(config_)));
  TRY(comm::require_same(group_, "the corpus (data.corpus)", corpus_.fingerprint()));
  TRY(ddp_->start_equal());

  // Only rank 0 reads checkpoints, so they may lie on a disk that only its host has.
  constexpr int64_t kFailed = -1;
  base::Status loaded = group_.rank() == 0 ? load_state() : base::ok();
  at::Tensor step =
      at::full({1}, loaded.ok() ? optimizer_->steps_done : kFailed, at::TensorOptions().dtype(at::kLong).device(group_.device()));
  group_.broadcast(step, 0, "step");
  if (!loaded.ok()) return loaded;
  const int64_t steps = step.item<int64_t>();
  if (steps == kFailed) return base::fail(base::ErrorKind::kConfig, "rank 0 could not begin; its own message says why");
  optimizer_->steps_done = steps;
  if (steps > 0) share_state();

  int64_t parameters = 0;
  for (const auto& parameter : gpt_->parameters()) parameters += parameter.numel();
  progress_.note(fmt::format("model: {:.2f} M parameters in {} bucket(s); data: {} of {}; batch: {} × {} tokens", parameters / 1e6,
                             buckets_.size(), base::format_bytes(corpus_.text().size()), config_.data.corpus, config_.train.batch,
                             config_.model.context));
  if (steps > 0) progress_.note(fmt::format("resumed behind step {} of {}", steps, config_.train.steps));
  saved_step_ = steps > 0 ? steps : -1;
  return progress_.open_log(config_.out, steps);
}

base::Status Trainer::load_state() {
  const std::string folder = checkpoint_folder(config_);
  std::optional<std::string> newest = checkpoint::latest(folder);
  if (!newest) return base::ok();
  if (config_.checkpoint.existing == "refuse")
    return base::fail(base::ErrorKind::kConfig, fmt::format("{} already holds a checkpoint", base::quote(config_.out)))
        .because(fmt::format("{} is there and checkpoint.existing is refuse", base::quote(*newest)))
        .with_hint("checkpoint.existing=resume continues it, checkpoint.existing=replace removes it");
  if (config_.checkpoint.existing == "replace") return checkpoint::remove_all(folder);
  TRY_ASSIGN(checkpoint::Loaded loaded, checkpoint::load(*newest));
  return restore(loaded, buckets_, *optimizer_);
}

void Trainer::share_state() {
  for (const parallel::Bucket& bucket : buckets_) group_.broadcast(bucket.params, 0, "state");
  for (const optim::NamedState& state : optimizer_->states())
    for (const at::Tensor& row : state.rows) group_.broadcast(row, 0, "state");
}

base::Status Trainer::save() {
  if (group_.rank() != 0 || saved_step_ == steps_done()) return base::ok();
  progress_.phase("save");
  base::Json about = {{"program", "phalanx-train"}, {"ranks", group_.world()}, {"config", to_json(config_)}};
  if (validation_loss_) about["validation_loss"] = *validation_loss_;
  TRY_ASSIGN(std::string path,
             checkpoint::save(checkpoint_folder(config_), snapshot(buckets_, *optimizer_, std::move(about)), config_.checkpoint.keep));
  saved_step_ = steps_done();
  progress_.note(fmt::format("saved {}", path));
  progress_.phase("train");
  return base::ok();
}

base::Status Trainer::write_sample() {
  if (group_.rank() != 0 || config_.sample.bytes == 0) return base::ok();
  progress_.phase("sample");
  const Config::Sample& s = config_.sample;
  std::vector<int64_t> ids =
      model::generate(gpt_, data::ByteTokenizer::encode(s.prompt), {s.bytes, s.temperature, s.top_k, static_cast<uint64_t>(config_.seed)});
  const std::string text = s.prompt + data::ByteTokenizer::decode(ids);
  TRY(os::write_file_atomic(config_.out + "/sample.txt", text, 0644));
  progress_.note(fmt::format("sample of {} bytes, also in {}/sample.txt:", s.bytes, config_.out));
  for (std::string_view line : base::split_lines(text)) std::printf("  %s\n", base::printable(line, 4096).c_str());
  std::fflush(stdout);
  return base::ok();
}

}  // namespace engine::train
