#include "engine/finetune/training.h"

#include <ATen/core/grad_mode.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <utility>

#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "engine/train/report/loss_picture.h"
#include "engine/train/report/metrics.h"
#include "engine/train/stop.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::engine::finetune {
namespace {

using base::Json;
using words::tr;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Counts {
  int64_t all = 0, trained = 0, without_embedding = 0;
};
Counts count(const tuning::Decoder& decoder) {
  Counts out;
  for (const at::Tensor& value : decoder->parameters()) {
    out.all += value.numel();
    if (value.requires_grad()) out.trained += value.numel();
  }
  out.without_embedding = out.all - decoder->embed_tokens->weight.numel();
  return out;
}

class Loop {
 public:
  Loop(Training training, comm::Group& group, Bar& bar)
      : recipe_(training.recipe),
        tuned_(std::move(training.tuned)),
        bar_(bar),
        group_(group),
        rows_(static_cast<int64_t>(training.rows.size())),
        evaluated_(std::move(training.evaluated)),
        counts_(count(tuned_.decoder)),
        where_{recipe_.output_dir,
               training.token,
               checkpoint::mark_of(training.attempt.run),
               fingerprint(recipe_, training.rows, group.world()),
               recipe_.save_only_model,
               recipe_.save_total_limit,
               recipe_.load_best_model_at_end},
        run_(tuned_.decoder, recipe_, std::move(training.rows), &group, filling(training.hollow)),
        history_(recipe_, run_.steps(), rows_, 6.0 * static_cast<double>(counts_.without_embedding), group.world()) {
    bar_.note(tr("training {} of {} parameters ({:.2f} %): {} steps, {} × {} × {} sequences each (batch, accumulation, ranks), {} threads",
                 counts_.trained, counts_.all, 100.0 * static_cast<double>(counts_.trained) / static_cast<double>(counts_.all),
                 run_.steps(), recipe_.per_device_train_batch_size, recipe_.gradient_accumulation_steps, group.world(), training.threads));
    if (recipe_.zero.stage > 0)
      bar_.note(tr("ZeRO: {}; rank 0 holds {} of parameters", run_.describe(),
                   base::format_bytes(static_cast<uint64_t>(run_.memory().parameters))));
  }

  // All ranks start from what rank 0 has: only its host needs the checkpoint.
  base::Status prepare(const std::optional<std::string>& start) {
    TRY(comm::agree(group_, filled_, "reading the weights"));
    TRY(comm::require_same(group_, "the recipe and its data", where_.fingerprint));
    TRY(comm::require_same(group_, "the recipe and what it evaluates on", fingerprint(recipe_, evaluated_, group_.world())));
    TRY(comm::agree(group_, first() ? prepare_files(start) : base::ok(), "preparing output_dir"));
    refer();
    const int64_t step = said_by_first(found_ ? found_->step : 0, "step to start from");
    if (step == 0) return base::ok();
    TRY(load_checkpoint(found_.value_or(Found()), run_));
    run_.continue_after(step);
    bar_.note(tr("resumed after step {} of {} from {}", run_.done(), run_.steps(), found_ ? found_->folder : ""));
    return base::ok();
  }
  bool first() const { return group_.rank() == 0; }

  base::Status prepare_files(const std::optional<std::string>& start) {
    TRY(os::make_folders(recipe_.output_dir, 0755));
    TRY(checkpoint::claim(recipe_.output_dir, where_.token));
    TRY(remove_leftovers(recipe_.output_dir));
    if (!start) {
      if (recipe_.overwrite_output_dir) TRY(remove_checkpoints(recipe_.output_dir));
      return open_log("");
    }
    TRY_ASSIGN(found_, open_checkpoint(*start, where_.fingerprint, run_, history_));
    TRY_ASSIGN(const std::string kept, kept_log());
    return open_log(kept);
  }

  // 0, or the signal that stopped it.
  base::Result<int> steps() {
    train::catch_stop_signals();
    bar_.start(words::Text{"training"}, "train", Bar::Unit::kSteps, static_cast<uint64_t>(run_.steps()),
               static_cast<uint64_t>(run_.done()));
    started_ = window_ = Clock::now();
    const int64_t before = run_.done();
    while (run_.done() < run_.steps() && !(run_.done() == before && ends_early())) {
      const tuning::StepReport report = run_.step(train::stop_signal() != 0);
      TRY(finite(report));
      tokens_ += report.tokens;
      const auto line = history_.add(report, run_.done(), run_.epochs());
      bar_.training(static_cast<uint64_t>(run_.done()), report.loss, tokens_ / std::max(seconds_since(window_), 1e-9));
      if (line) tell(*line);
      const bool epoch_ends = run_.epochs() == std::floor(run_.epochs());
      const bool evaluates = history_.evaluates_after(run_.done(), epoch_ends);
      if (evaluates) TRY(evaluate());
      const bool stops = report.stops && run_.done() < run_.steps();
      if (history_.saves_after(run_.done(), epoch_ends) || (stops && recipe_.save_strategy != "no")) TRY(checkpoint());
      if (stops) return tell_stopped(train::stop_signal() != 0 ? train::stop_signal() : SIGTERM, before);
      if (evaluates && ends_early()) break;
    }
    return 0;
  }

  base::Status finish() {
    const double seconds = seconds_since(started_);
    const bool evaluated_now = history_.evaluates_after(run_.done(), true) && run_.done() > 0;
    TRY_ASSIGN(const bool other_weights, take_best());
    if (recipe_.do_eval && (!evaluated_now || other_weights)) TRY(evaluate());
    return with_result(tuned_, run_, [&](const Trained& trained) { return write_results(seconds, trained); });
  }

 private:
  // What rank 0 says, which alone has seen the log of a run that was continued.
  int64_t said_by_first(int64_t mine, const char* what) {
    return *base::parse_int(comm::exchange(group_, fmt::to_string(mine), what)[0], 0, INT64_MAX);
  }

  bool ends_early() {
    if (!recipe_.early_stopping_steps || run_.done() == run_.steps()) return false;
    if (said_by_first(history_.stops_early() ? 1 : 0, "whether training ends early") == 0) return false;
    bar_.note(tr("training ends after step {} of {}: no evaluation has been better than that after step {}", run_.done(), run_.steps(),
                 history_.best_step()));
    return true;
  }

  // Back to the best checkpoint, which is the result; whether that is another model than the last one.
  base::Result<bool> take_best() {
    if (!recipe_.load_best_model_at_end) return false;
    const int64_t mine = history_.best_checkpoint();
    const bool gone = first() && mine > 0 && mine != run_.done() && is_gone(history_.best_folder());
    if (gone) bar_.note(tr("{} is gone: the result is the model after the last step", history_.best_folder()));
    const int64_t best = said_by_first(gone ? 0 : mine, "step of the best checkpoint");
    if (best == 0 || best == run_.done()) return false;
    TRY(load_weights_of(history_.best_folder(), tuned_.adapter.has_value(), run_));
    bar_.note(tr("the result is the checkpoint of step {}: no later one had the best evaluation so far", best));
    return true;
  }

  static bool is_gone(const std::string& folder) {
    auto present = os::is_present_folder(folder);
    return present.ok() && !*present;
  }

  // The model before training is what a preference is compared with: also where training is continued.
  void refer() {
    if (recipe_.stage != "dpo" || !tuning::has_reference(recipe_)) return;
    bar_.start(words::Text{"answers before training"}, "load", Bar::Unit::kParts, 0);
    run_.refer(&evaluated_, [&](uint64_t done, uint64_t all) { bar_.advance(done, all); });
    bar_.end();
  }

  base::Status evaluate() {
    const auto before = Clock::now();
    bar_.start(words::Text{"evaluating"}, "eval", Bar::Unit::kParts, 0);
    const tuning::Evaluation found = run_.evaluate(evaluated_, [&](uint64_t done, uint64_t all) { bar_.advance(done, all); });
    bar_.start(words::Text{"training"}, "train", Bar::Unit::kSteps, static_cast<uint64_t>(run_.steps()),
               static_cast<uint64_t>(run_.done()));
    const Json& entry = history_.add(found, seconds_since(before));
    window_ += Clock::now() - before;
    if (!first()) return base::ok();
    bar_.printed(fmt::format("step {}/{}  eval loss {:.4f}", run_.done(), run_.steps(), found.loss));
    append_log(entry, seconds_since(started_));
    return base::ok();
  }

  // Reads the weights of a decoder that has none yet: rank 0 does, the others get their shares of them.
  std::function<void()> filling(const tuning::HollowDecoder& hollow) {
    if (hollow.parameters.empty()) return {};
    return [this, &hollow] {
      bar_.start(words::Text{"loading the model"}, "load", Bar::Unit::kBytes, 0);
      filled_ = tuning::fill_decoder(hollow, first(), [this](uint64_t done, uint64_t all) { bar_.advance(done, all); });
      bar_.end();
    };
  }

  base::Status write_results(double seconds, const Trained& trained) {
    const Json results = history_.finish(seconds);
    append_log(history_.log().back(), seconds);
    TRY(replace_tuned(tuned_, recipe_.output_dir, where_.token, bar_, trained));
    const std::string text = base::to_text(results, 4) + "\n";
    TRY(os::write_file_atomic(path("train_results.json"), text, 0644));
    Json all = results;
    if (const Json evaluation = history_.evaluation_results(); !evaluation.empty()) {
      TRY(os::write_file_atomic(path("eval_results.json"), base::to_text(evaluation, 4) + "\n", 0644));
      for (const auto& [key, value] : evaluation.items()) all[key] = value;
    }
    TRY(os::write_file_atomic(path("all_results.json"), base::to_text(all, 4) + "\n", 0644));
    TRY(os::write_file_atomic(path("trainer_state.json"), base::to_text(history_.trainer_state(), 2) + "\n", 0644));
    if (recipe_.plot_loss) TRY(draw());
    bar_.note(tr("done in {}: mean loss {:.4f}; written to {}", train::short_duration(seconds),
                 history_.loss_sum() / static_cast<double>(std::max<int64_t>(run_.done(), 1)), recipe_.output_dir));
    return base::ok();
  }

  std::string path(const char* name) const { return recipe_.output_dir + "/" + name; }
  std::string log_path() const { return path("trainer_log.jsonl"); }

  base::Status checkpoint() {
    const auto before = Clock::now();
    TRY(save(where_, tuned_, run_, history_, bar_));
    window_ += Clock::now() - before;  // saving does not count as slow training
    return base::ok();
  }

  void tell(const LogLine& line) {
    if (!first()) return;
    const double speed = tokens_ / std::max(seconds_since(window_), 1e-9), left = bar_.eta_s();
    bar_.printed(fmt::format("step {}/{}  loss {:.4f}  lr {:.3e}  norm {:.4f}  epoch {:.2f}  {:.0f} tokens/s{}", line.step, run_.steps(),
                             line.loss, line.rate, line.gradient_norm, line.epoch, speed,
                             left > 0 ? "  eta " + train::short_duration(left) : ""));
    tokens_ = 0;
    window_ = Clock::now();
    append_log(history_.log().back(), seconds_since(started_));
  }

  // A line of the log is worth less than the training: on a full disk it is left out, which is told once.
  void append_log(const Json& entry, double elapsed) {
    const std::string line = base::to_text(progress_line(entry, run_.steps(), elapsed)) + "\n";
    const base::Status written = os::append_all(log_.get(), line, log_path());
    if (std::exchange(keeps_log_, written.ok()) && !written.ok())
      bar_.note(tr("the training continues without lines in its log: {}", written.error().message));
  }

  // The same on all ranks.
  base::Status finite(const tuning::StepReport& report) const {
    if (std::isfinite(report.loss) && std::isfinite(report.gradient_norm)) return base::ok();
    return base::fail(base::ErrorKind::kJobFailed, fmt::format("the {} of step {} is not a finite number",
                                                               std::isfinite(report.loss) ? "gradient" : "loss", run_.done()))
        .because("the training diverged; this step was not saved")
        .with_hint("lower learning_rate or max_grad_norm, or raise warmup_steps; the model itself may hold values that are not finite");
  }

  // Lines after the step that is continued will be written again.
  base::Result<std::string> kept_log() const {
    TRY_ASSIGN(const auto old, os::read_if_present(log_path(), 256 << 20));
    if (!old) return std::string();
    std::string kept;
    for (std::string_view line : base::split_lines(*old)) {
      auto entry = base::parse_json(line);
      const bool of_step = entry.ok() && (entry->contains("loss") || entry->contains("eval_loss"));
      if (!of_step || base::get_int(*entry, "current_steps").value_or(INT64_MAX) > found_->step) continue;
      kept += std::string(line) + "\n";
    }
    return kept;
  }

  base::Status open_log(const std::string& kept) {
    TRY(os::write_file_atomic(log_path(), kept, 0644));
    log_ = os::Fd(::open(log_path().c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    return log_.valid() ? base::ok() : base::system_error("open", log_path());
  }

  int tell_stopped(int signal, int64_t before) {
    if (recipe_.save_strategy == "no") bar_.note(tr("stopped after step {}; nothing was saved: save_strategy is no", run_.done()));
    else bar_.note(tr("stopped after step {} ({} since the start); a checkpoint was saved", run_.done(), run_.done() - before));
    return signal;
  }

  base::Status draw() {
    train::LossCurves curves;
    curves.title = "training loss of " + recipe_.output_dir;
    for (const Json& entry : history_.log()) {
      const auto step = static_cast<double>(base::get_int(entry, "step").value_or(0));
      if (auto loss = base::get_number(entry, "loss")) curves.training.push_back({step, *loss});
      if (auto loss = base::get_number(entry, "eval_loss")) curves.validation.push_back({step, *loss});
    }
    return os::write_file_atomic(path("training_loss.svg"), train::loss_picture(curves), 0644);
  }

  const tune::Recipe recipe_;
  Tuned tuned_;
  Bar& bar_;
  comm::Group& group_;
  const int64_t rows_;
  std::vector<tuning::TuningRow> evaluated_;
  const Counts counts_;
  const Checkpoints where_;
  base::Status filled_ = base::ok();
  std::optional<Found> found_;  // rank 0: the checkpoint that is continued
  tuning::FineTuning run_;
  History history_;
  os::Fd log_;
  bool keeps_log_ = true;  // the last line could be written
  Clock::time_point started_ = Clock::now(), window_ = started_;
  double tokens_ = 0;  // since window_
};

}  // namespace

base::Result<int> train(Training training, const std::optional<std::string>& start, comm::Group& group, Bar& bar) {
  Loop loop(std::move(training), group, bar);
  TRY(loop.prepare(start));
  TRY_ASSIGN(const int signal, loop.steps());
  if (signal == 0) TRY(loop.finish());
  bar.finish();
  return signal;
}

}  // namespace phalanx::engine::finetune
