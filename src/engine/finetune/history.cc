#include "engine/finetune/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::engine::finetune {
namespace {

using base::Json;
using tuning::kPairMetrics;

// A number of steps, or below 1 a share of all.
int64_t every(double given, int64_t steps) {
  if (given >= 1) return static_cast<int64_t>(given);
  return std::max<int64_t>(static_cast<int64_t>(std::ceil(given * static_cast<double>(steps))), 1);
}

double rounded(double value, int digits) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

// Python's str(timedelta(seconds=…)): "0:00:12", "1 day, 2:03:04".
std::string clock_text(double seconds) {
  const auto all = static_cast<int64_t>(std::max(seconds, 0.0));
  const int64_t days = all / 86400;
  return fmt::format("{}{}:{:02}:{:02}", days == 0 ? "" : fmt::format("{} day{}, ", days, days == 1 ? "" : "s"), all / 3600 % 24,
                     all / 60 % 60, all % 60);
}

// The name of a metric in the log.
std::string metric_of(const tune::Recipe& recipe) {
  const std::string& name = recipe.metric_for_best_model;
  if (name.empty()) return "eval_loss";
  return name.starts_with("eval_") ? name : "eval_" + name;
}

bool greater_is_better(const tune::Recipe& recipe) {
  if (!recipe.greater_is_better.empty()) return recipe.greater_is_better == "true";
  return !metric_of(recipe).ends_with("loss");
}

base::Result<double> exact(const std::map<std::string, std::string>& sums, const std::string& key) {
  auto found = sums.find(key);
  char* end = nullptr;
  const double value = found == sums.end() ? NAN : std::strtod(found->second.c_str(), &end);
  if (!std::isfinite(value) || end == found->second.c_str() || *end != '\0')
    return base::fail(base::ErrorKind::kConfig, fmt::format("the checkpoint's state has no number {}", key));
  return value;
}

}  // namespace

History::History(const tune::Recipe& recipe, int64_t steps, int64_t rows, double flops_per_token, int64_t world)
    : recipe_(recipe),
      steps_(steps),
      rows_(rows),
      world_(world),
      logging_every_(every(recipe.logging_steps, steps)),
      saving_every_(every(recipe.save_steps, steps)),
      evaluating_every_(every(recipe.eval_steps.value_or(recipe.logging_steps), steps)),
      flops_per_token_(flops_per_token) {}

std::optional<LogLine> History::add(const tuning::StepReport& report, int64_t step, double epoch) {
  step_ = step;
  epoch_ = epoch;
  loss_sum_ += report.loss;
  window_loss_ += report.loss;
  for (size_t i = 0; i < window_pairs_.size(); ++i) window_pairs_[i] += report.pairs[i];
  ++window_steps_;
  flops_ += flops_per_token_ * static_cast<double>(report.tokens);
  if (step % logging_every_ != 0 && !(recipe_.logging_first_step && step == 1)) return std::nullopt;
  LogLine line{step, epoch, window_loss_ / static_cast<double>(window_steps_), report.gradient_norm, report.rate, window_pairs_};
  for (double& one : line.pairs) one /= static_cast<double>(window_steps_);
  window_loss_ = 0;
  window_steps_ = 0;
  window_pairs_ = {};
  Json entry = {{"epoch", line.epoch}, {"grad_norm", line.gradient_norm}, {"learning_rate", line.rate}};
  // In the order of their names, as the Trainer writes them.
  for (size_t i = 0; i < line.pairs.size() && recipe_.stage == "dpo"; ++i)
    if (std::string_view(kPairMetrics[i]).starts_with("logps")) entry[std::string(kPairMetrics[i])] = line.pairs[i];
  entry["loss"] = rounded(line.loss, 4);
  for (size_t i = 0; i < line.pairs.size() && recipe_.stage == "dpo"; ++i)
    if (std::string_view(kPairMetrics[i]).starts_with("rewards")) entry[std::string(kPairMetrics[i])] = line.pairs[i];
  entry["step"] = step;
  log_.push_back(std::move(entry));
  return line;
}

bool History::evaluates_after(int64_t step, bool epoch_ends) const {
  if (recipe_.eval_strategy == "epoch") return epoch_ends || step == steps_;
  return recipe_.eval_strategy == "steps" && step % evaluating_every_ == 0;
}

const Json& History::add(const tuning::Evaluation& evaluation, double seconds) {
  const int64_t batch = recipe_.per_device_eval_batch_size * world_, steps = (evaluation.rows + batch - 1) / batch;
  const auto per_second = [&](int64_t count) { return rounded(static_cast<double>(count) / std::max(seconds, 1e-9), 3); };
  Json entry = {{"epoch", epoch_}};
  for (size_t i = 0; i < evaluation.pairs.size() && recipe_.stage == "dpo"; ++i)
    if (std::string_view(kPairMetrics[i]).starts_with("logps")) entry[fmt::format("eval_{}", kPairMetrics[i])] = evaluation.pairs[i];
  entry["eval_loss"] = evaluation.loss;
  for (size_t i = 0; i < evaluation.pairs.size() && recipe_.stage == "dpo"; ++i)
    if (std::string_view(kPairMetrics[i]).starts_with("rewards")) entry[fmt::format("eval_{}", kPairMetrics[i])] = evaluation.pairs[i];
  entry["eval_runtime"] = rounded(seconds, 4);
  entry["eval_samples_per_second"] = per_second(evaluation.rows);
  entry["eval_steps_per_second"] = per_second(steps);
  entry["step"] = step_;
  log_.push_back(std::move(entry));
  if (recipe_.seeks_best()) compare(log_.back(), recipe_.output_dir);
  return log_.back();
}

// Source: transformers v4.51.3, Trainer._determine_best_metric and EarlyStoppingCallback.
void History::compare(const Json& entry, const std::string& beside) {
  const double value = base::get_number(entry, metric_of(recipe_)).value_or(NAN);
  const bool better = !best_ || (greater_is_better(recipe_) ? value > *best_ : value < *best_);
  worse_ = better ? 0 : worse_ + 1;
  if (!better || std::isnan(value)) return;
  best_ = value;
  best_step_ = base::get_int(entry, "step").value_or(0);
  const bool at_epochs = recipe_.eval_strategy == "epoch" && recipe_.save_strategy == "epoch";
  if (!saves_after(best_step_, at_epochs)) return;
  best_checkpoint_ = best_step_;
  best_folder_ = fmt::format("{}/checkpoint-{}", beside, best_step_);
}

base::Status History::check(const tune::Recipe& recipe) {
  const std::string metric = metric_of(recipe);
  std::vector<std::string> known{"loss"};
  for (const auto& name : kPairMetrics)
    if (recipe.stage == "dpo") known.emplace_back(name);
  for (const std::string& name : known)
    if (metric == "eval_" + name) return base::ok();
  return base::fail(base::ErrorKind::kConfig,
                    fmt::format("metric_for_best_model: evaluations have no {}", base::quote(recipe.metric_for_best_model)))
      .because(fmt::format("they have {}", base::join(known, ", ")));
}

Json History::evaluation_results() const {
  Json out = Json::object();
  for (auto entry = log_.rbegin(); entry != log_.rend() && out.empty(); ++entry) {
    if (!entry->contains("eval_loss")) continue;
    for (const auto& [key, value] : entry->items())
      if (key != "step") out[key] = value;
    if (recipe_.stage == "pt") out["perplexity"] = std::exp((*entry)["eval_loss"].get<double>());
  }
  return out;
}

bool History::saves_after(int64_t step, bool epoch_ends) const {
  if (recipe_.save_strategy == "no") return false;
  if (step == steps_) return true;
  return recipe_.save_strategy == "epoch" ? epoch_ends : step % saving_every_ == 0;
}

Json History::callbacks() const {
  if (!recipe_.early_stopping_steps) return Json::object();
  return {{"EarlyStoppingCallback",
           {{"args", {{"early_stopping_patience", *recipe_.early_stopping_steps}, {"early_stopping_threshold", 0.0}}},
            {"attributes", {{"early_stopping_patience_counter", worse_}}}}}};
}

Json History::trainer_state() const {
  return {{"best_global_step", best_step_ > 0 ? Json(best_step_) : Json()},
          {"best_metric", best_ ? Json(*best_) : Json()},
          {"best_model_checkpoint", best_checkpoint_ > 0 ? Json(best_folder_) : Json()},
          {"epoch", epoch_},
          {"eval_steps", recipe_.eval_strategy == "steps" ? Json(evaluating_every_) : Json(500)},
          {"global_step", step_},
          {"is_hyper_param_search", false},
          {"is_local_process_zero", true},
          {"is_world_process_zero", true},
          {"log_history", log_},
          {"logging_steps", logging_every_},
          {"max_steps", steps_},
          {"num_input_tokens_seen", 0},
          {"num_train_epochs", static_cast<int64_t>(std::ceil(recipe_.max_steps > 0 ? std::max(epoch_, 1.0) : recipe_.num_train_epochs))},
          {"save_steps", saving_every_},
          {"stateful_callbacks", callbacks()},
          {"total_flos", flops_},
          {"train_batch_size", recipe_.per_device_train_batch_size},
          {"trial_name", nullptr},
          {"trial_params", nullptr}};
}

Json History::finish(double seconds) {
  const double samples = recipe_.max_steps > 0 ? static_cast<double>(steps_ * recipe_.per_device_train_batch_size) *
                                                     static_cast<double>(recipe_.gradient_accumulation_steps * world_)
                                               : static_cast<double>(rows_) * recipe_.num_train_epochs;
  const Json out = {{"epoch", epoch_},
                    {"total_flos", flops_},
                    {"train_loss", loss_sum_ / static_cast<double>(std::max<int64_t>(step_, 1))},
                    {"train_runtime", rounded(seconds, 4)},
                    {"train_samples_per_second", rounded(samples / std::max(seconds, 1e-9), 3)},
                    {"train_steps_per_second", rounded(static_cast<double>(steps_) / std::max(seconds, 1e-9), 3)}};
  Json entry = {{"epoch", epoch_}, {"step", step_}};
  for (const auto& [key, value] : out.items()) entry[key] = value;
  log_.push_back(std::move(entry));
  return out;
}

std::map<std::string, std::string> History::sums() const {
  std::map<std::string, std::string> out{{"loss_sum", fmt::format("{:a}", loss_sum_)},
                                         {"window_loss", fmt::format("{:a}", window_loss_)},
                                         {"window_steps", fmt::format("{}", window_steps_)},
                                         {"flops", fmt::format("{:a}", flops_)}};
  for (size_t i = 0; i < window_pairs_.size() && recipe_.stage == "dpo"; ++i)
    out[fmt::format("window {}", kPairMetrics[i])] = fmt::format("{:a}", window_pairs_[i]);
  return out;
}

base::Status History::restore(const Json& trainer_state, const std::map<std::string, std::string>& sums, const std::string& beside) {
  const auto step = base::get_int(trainer_state, "global_step");
  const auto epoch = base::get_number(trainer_state, "epoch");
  auto log = trainer_state.is_object() ? trainer_state.find("log_history") : trainer_state.end();
  if (!step || !epoch || log == trainer_state.end() || !log->is_array())
    return base::fail(base::ErrorKind::kConfig, "trainer_state.json lacks global_step, epoch or log_history");
  TRY_ASSIGN(loss_sum_, exact(sums, "loss_sum"));
  TRY_ASSIGN(window_loss_, exact(sums, "window_loss"));
  TRY_ASSIGN(flops_, exact(sums, "flops"));
  TRY_ASSIGN(const double window_steps, exact(sums, "window_steps"));
  window_steps_ = static_cast<int64_t>(window_steps);
  for (size_t i = 0; i < window_pairs_.size() && recipe_.stage == "dpo"; ++i) {
    TRY_ASSIGN(window_pairs_[i], exact(sums, fmt::format("window {}", kPairMetrics[i])));
  }
  step_ = *step;
  epoch_ = *epoch;
  log_.assign(log->begin(), log->end());
  for (const Json& entry : log_)
    if (recipe_.seeks_best() && entry.contains("eval_loss")) compare(entry, beside);
  return base::ok();
}

Json progress_line(const Json& entry, int64_t steps, double elapsed_s) {
  const int64_t step = base::get_int(entry, "step").value_or(0);
  Json out = {{"current_steps", step}, {"total_steps", steps}};
  for (auto [from, to] : {std::pair{"loss", "loss"}, {"eval_loss", "eval_loss"}, {"rewards/accuracies", "accuracy"}})
    if (auto number = base::get_number(entry, from)) out[to] = *number;
  if (auto rate = base::get_number(entry, "learning_rate")) out["lr"] = *rate;
  out["epoch"] = base::get_number(entry, "epoch").value_or(0);
  out["percentage"] = steps == 0 ? 100.0 : rounded(100.0 * static_cast<double>(step) / static_cast<double>(steps), 2);
  out["elapsed_time"] = clock_text(elapsed_s);
  out["remaining_time"] = clock_text(step == 0 ? 0 : elapsed_s / static_cast<double>(step) * static_cast<double>(steps - step));
  return out;
}

}  // namespace phalanx::engine::finetune
