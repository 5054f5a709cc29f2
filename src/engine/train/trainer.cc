#include "engine/train/trainer.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <csignal>

#include "base/try.h"
#include "engine/comm/fingerprint.h"
#include "engine/to_device.h"
#include "engine/train/cpu.h"
#include "engine/train/stop.h"

namespace phalanx::engine::train {
namespace {

using Clock = std::chrono::steady_clock;

// Seconds since it was last asked.
class Lap {
 public:
  double operator()() {
    const auto before = std::exchange(start_, Clock::now());
    return std::chrono::duration<double>(start_ - before).count();
  }

 private:
  Clock::time_point start_ = Clock::now();
};

bool due(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

}  // namespace

base::Result<int> Trainer::run() {
  const optim::Schedule schedule = make_schedule(config_, data_.steps);
  catch_stop_signals();
  progress_.phase("train");
  int signal = 0;
  while (steps_done() < data_.steps && signal == 0 && !early_stop_.stop()) {
    Lap lap, whole;
    StepReport report;
    StepTimes& times = report.times;
    const double waited_before = parallel_->waited_seconds();
    base::Result<data::Step> mine = data_.training->next();
    const double read = lap();
    TRY_ASSIGN(Plan plan, plan_step(mine, read));
    const double planned = read + lap();
    times.data = std::min(planned, plan.data);
    times.exchange = planned - times.data;
    signal = plan.signal;
    if (signal != 0) break;  // before the step: the data of it is asked for again after a resume

    report.lr = schedule.at(steps_done());
    seed_dropout();
    const double local = compute(*mine, plan);
    clock_.start();
    const double scale = precision_.loss_scaling ? scaler_.scale() : 1;
    const parallel::StepResult result =
        parallel_->step(*optimizer_, {.lr = report.lr, .max_norm = config_.optimizer.clip, .loss_scale = scale});
    if (precision_.loss_scaling) scaler_.update(result.finite);
    if (!result.finite) ++optimizer_->steps_done;  // a step of the run, of which nothing is learned
    clock_.end(&StepTimes::optimizer);
    clock_.add_to(&times);
    times.waited = parallel_->waited_seconds() - waited_before;

    report.step = steps_done();
    report.loss = plan.targets == 0 ? 0 : sum_over_ranks(local, "loss") / static_cast<double>(plan.targets);
    report.grad_norm = result.norm;
    report.skipped = !result.finite;
    report.loss_scale = precision_.loss_scaling ? scale : 0;
    report.targets = plan.targets;
    report.overlap = static_cast<double>(parallel_->overlapped()) / static_cast<double>(parallel_->units().size());
    report.resident_bytes = plan.resident;
    report.resident_peak = plan.resident_peak;
    if (!group_.device().is_cpu()) {  // the host's wait in the exchange was for the GPU, too
      times.exchange = 0;
      times.rest = std::max(0.0, whole() - times.all());
    }
    state_of_data_ = data_.training->state();
    TRY(after_step(report, report.step == data_.steps));
  }
  if (signal != 0) {
    progress_.note(fmt::format("stopping after step {}, requested by {}", steps_done(), signal == SIGINT ? "SIGINT" : "SIGTERM"));
    TRY(save());
  }
  progress_.phase("save");
  TRY(saving_->finish());
  TRY(progress_.finish());
  return signal;
}

base::Status Trainer::after_step(const StepReport& report, bool last) {
  progress_.step(report);
  saving_->poll();
  const bool diverged = !std::isfinite(report.loss) || (report.skipped && !precision_.loss_scaling);
  if (diverged)
    return base::fail(base::ErrorKind::kJobFailed, fmt::format("the {} of step {} is not a finite number",
                                                               std::isfinite(report.loss) ? "gradient" : "loss", report.step))
        .because("the training diverged; this step was not saved")
        .with_hint("lower optimizer.lr, raise optimizer.warmup, or lower optimizer.clip");
  bool stops = false;
  if (data_.validation && (last || due(report.step, config_.validation.every))) {
    TRY(validate());
    stops = early_stop_.stop();
    if (stops)
      progress_.note(fmt::format("stopping early after step {}: {} validations without a better loss than {:.4f}", report.step,
                                 early_stop_.since_best, early_stop_.best));
  }
  if (last || stops || due(report.step, config_.checkpoint.every) || best_) TRY(save());
  return base::ok();
}

// One exchange before each step: how much there is to learn in all, who makes how many passes, and whether someone fails or has to stop.
base::Result<Trainer::Plan> Trainer::plan_step(base::Result<data::Step>& mine, double data_seconds) {
  enum { kTargets, kPasses, kFailed, kSignal, kDataNanoseconds, kResident, kResidentPeak, kNumbers };
  if (progress_.prints(steps_done() + 1)) {
    resident_ = resident_bytes();
    resident_peak_ = std::max(resident_, resident_peak_bytes());
  }
  at::Tensor all =
      at::zeros({group_.world(), kNumbers}, at::TensorOptions().dtype(at::kLong).device(group_.world() > 1 ? group_.device() : at::kCPU));
  at::Tensor own = at::zeros({kNumbers}, at::kLong);
  int64_t* numbers = own.data_ptr<int64_t>();
  numbers[kTargets] = mine.ok() ? mine->targets : 0;
  numbers[kPasses] = mine.ok() ? static_cast<int64_t>(mine->micro.size()) : 0;
  numbers[kFailed] = mine.ok() ? 0 : 1;
  numbers[kSignal] = stop_signal();
  numbers[kDataNanoseconds] = std::llround(data_seconds * 1e9);
  numbers[kResident] = resident_;
  numbers[kResidentPeak] = resident_peak_;
  all[group_.rank()].copy_(own);
  if (group_.world() > 1) group_.all_gather(all, all.narrow(0, group_.rank(), 1), "the data of the step");
  all = all.to(at::kCPU);
  Plan plan;
  bool failed = false;
  for (int rank = 0; rank < group_.world(); ++rank) {
    const int64_t* row = all.data_ptr<int64_t>() + rank * kNumbers;
    plan.targets += row[kTargets];
    plan.passes = std::max(plan.passes, row[kPasses]);
    failed = failed || row[kFailed] != 0;
    if (plan.signal == 0) plan.signal = static_cast<int>(row[kSignal]);
    plan.data = std::max(plan.data, static_cast<double>(row[kDataNanoseconds]) * 1e-9);
    plan.resident = std::max(plan.resident, row[kResident]);
    plan.resident_peak = std::max(plan.resident_peak, row[kResidentPeak]);
  }
  if (failed) TRY(comm::agree(group_, mine.ok() ? base::ok() : base::Status(mine.error()), "reading the data of the step"));
  return plan;
}

// Forward and backward of this rank's passes; returns its sum of losses. A rank with fewer passes than others takes part in theirs with
// nothing to learn.
double Trainer::compute(const data::Step& mine, const Plan& plan) {
  const double scale = (precision_.loss_scaling ? scaler_.scale() : 1) / static_cast<double>(std::max<int64_t>(plan.targets, 1));
  std::vector<at::Tensor> sums;
  clock_.start();
  for (int64_t pass = 0; pass < plan.passes; ++pass) {
    at::Tensor loss;
    if (static_cast<size_t>(pass) < mine.micro.size()) {
      const data::MicroBatch& micro = mine.micro[static_cast<size_t>(pass)];
      const auto casts = cast();
      loss = gpt_->summed_loss(to_device(micro.at("tokens"), group_.device()), to_device(micro.at("targets"), group_.device()));
      sums.push_back(loss.detach());
    } else if (parallel_->options().stage == parallel::Stage::kZero3) {
      loss = nothing_to_learn();
    }
    clock_.end(&StepTimes::forward);
    parallel_->backward(loss.defined() ? loss * scale : loss, pass + 1 == plan.passes);
    clock_.end(&StepTimes::backward);
  }
  double sum = 0;
  for (const at::Tensor& one : sums) sum += one.item<double>();
  return sum;
}

// Autocast while it lives, where the precision wants it. In stage 3 casts are not kept: all together they would be the whole model.
std::unique_ptr<AutocastScope> Trainer::cast() const {
  if (precision_.autocast == at::kFloat) return nullptr;
  const bool keep = parallel_->options().stage != parallel::Stage::kZero3;
  return std::make_unique<AutocastScope>(group_.device(), AutocastState{true, precision_.autocast}, keep);
}

// In stage 3 the other ranks' forward needs this rank's parameters: it goes through the model with one token and a loss of no weight.
at::Tensor Trainer::nothing_to_learn() {
  at::Tensor token = at::zeros({1, 1}, at::TensorOptions().dtype(at::kLong).device(group_.device()));
  const auto casts = cast();
  return gpt_->summed_loss(token, token) * 0;
}

// What dropout draws is a function of seed, step and rank, so that a resumed run draws the same.
void Trainer::seed_dropout() {
  if (config_.model.dropout == 0) return;
  comm::Fingerprint print;
  for (int64_t number : {config_.seed, steps_done(), static_cast<int64_t>(group_.rank())}) print.add(number);
  at::Generator generator = at::globalContext().defaultGenerator(group_.device());
  std::lock_guard lock(generator.mutex());
  generator.set_current_seed(print.value());
}

double Trainer::sum_over_ranks(double value, std::string_view label) {
  if (group_.world() == 1) return value;
  at::Tensor shared = at::full({1}, value, at::TensorOptions().dtype(at::kDouble).device(group_.device()));
  group_.all_reduce(shared, comm::Reduction::kSum, label);
  return shared.item<double>();
}

base::Status Trainer::validate() {
  progress_.phase("eval");
  at::NoGradGuard no_grad;
  gpt_->eval();
  TRY(data_.validation->start(0));
  double sum = 0, targets = 0;
  for (int64_t step = 0; step < data_.validation_steps; ++step) {
    base::Result<data::Step> mine = data_.validation->next();
    TRY(comm::agree(group_, mine.ok() ? base::ok() : base::Status(mine.error()), "reading the validation data"));
    const auto casts = cast();
    for (const data::MicroBatch& micro : mine->micro)
      sum +=
          gpt_->summed_loss(to_device(micro.at("tokens"), group_.device()), to_device(micro.at("targets"), group_.device())).item<double>();
    if (mine->micro.empty() && parallel_->options().stage == parallel::Stage::kZero3) nothing_to_learn();
    targets += static_cast<double>(mine->targets);
  }
  gpt_->train();
  parallel_->check();
  sum = sum_over_ranks(sum, "validation loss");
  targets = sum_over_ranks(targets, "validation targets");
  validation_loss_ = targets > 0 ? sum / targets : 0;
  if (early_stop_.better(*validation_loss_) && config_.checkpoint.best == "on")
    best_ = checkpoint::Best{steps_done(), "validation_loss", *validation_loss_};
  progress_.validation(steps_done(), *validation_loss_);
  progress_.phase("train");
  return base::ok();
}

}  // namespace phalanx::engine::train
