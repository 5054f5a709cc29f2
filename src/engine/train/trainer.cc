#include "engine/train/trainer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <csignal>

#include "engine/optim/schedule.h"
#include "engine/train/stop.h"

namespace engine::train {
namespace {

// Tokens per second of the steps since the last reset; validation and saving do not count.
class SpeedMeter {
 public:
  void reset() { tokens_ = seconds_ = 0; }
  void start() { start_ = std::chrono::steady_clock::now(); }
  double stop(int64_t tokens) {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    tokens_ += static_cast<double>(tokens);
    return seconds_ > 0 ? tokens_ / seconds_ : 0;
  }

 private:
  std::chrono::steady_clock::time_point start_;
  double tokens_ = 0, seconds_ = 0;
};

bool due(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

}  // namespace

base::Result<int> Trainer::run() {
  const optim::Schedule schedule{optim::Curve::kCosine, config_.optimizer.lr, config_.optimizer.min_lr, config_.optimizer.warmup,
                                 config_.train.steps};
  catch_stop_signals();
  progress_.phase("train");
  SpeedMeter meter;
  while (steps_done() < config_.train.steps) {
    meter.start();
    StepReport report;
    report.lr = schedule.at(steps_done());
    const double local_loss = forward_backward(steps_done());
    report.grad_norm = parallel::clip_grads(buckets_, config_.optimizer.clip);
    optimizer_->step(report.lr);
    parallel::zero_grads(buckets_);
    const Agreed agreed = agree(local_loss, stop_signal());

    report.step = steps_done();
    report.loss = agreed.loss;
    report.tokens_per_s = meter.stop(config_.train.batch * config_.model.context);
    TRY(progress_.step(report));
    if (!std::isfinite(agreed.loss))
      return base::fail(base::ErrorKind::kJobFailed, fmt::format("the loss of step {} is not a finite number", report.step))
          .because("the training diverged; nothing of it was saved")
          .with_hint("lower optimizer.lr, raise optimizer.warmup, or lower optimizer.clip");
    if (due(report.step, config_.train.log_every)) meter.reset();

    if (agreed.signal != 0) {
      progress_.note(fmt::format("stopping after step {} as asked by {}", report.step, agreed.signal == SIGINT ? "SIGINT" : "SIGTERM"));
      TRY(save());
      return agreed.signal;
    }
    const bool last = report.step == config_.train.steps;
    if (validation_ && (last || due(report.step, config_.validation.every))) TRY(validate());
    if (last || due(report.step, config_.checkpoint.every)) TRY(save());
  }
  return 0;
}

// Leaves in every rank's gradients the mean over the whole batch; returns the mean loss of this rank's share.
double Trainer::forward_backward(int64_t step) {
  const data::Batch batch = training_->batch(step);
  const int64_t pieces = config_.train.accumulate, rows = batch.tokens.size(0) / pieces;
  double sum = 0;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    at::Tensor tokens = batch.tokens.narrow(0, piece * rows, rows).to(group_.device());
    at::Tensor targets = batch.targets.narrow(0, piece * rows, rows).to(group_.device());
    const model::SummedLoss summed = gpt_->loss(tokens, targets);
    at::Tensor loss = summed.sum / static_cast<double>(summed.targets * pieces);
    ddp_->backward(loss, /*reduce=*/piece + 1 == pieces);
    sum += loss.item<double>();
  }
  return sum;
}

// One small sum over the ranks after each step. All see the same loss, and all stop behind the same step although a signal
// reaches them at different moments.
Trainer::Agreed Trainer::agree(double local_loss, int local_signal) {
  at::Tensor shared = at::tensor({local_loss, local_signal == SIGTERM ? 1.0 : 0.0, local_signal == SIGINT ? 1.0 : 0.0}).to(group_.device());
  group_.all_reduce(shared, comm::Reduction::kSum, "loss and signals");
  shared = shared.to(at::kCPU);
  const double* sums = shared.data_ptr<double>();
  return {sums[0] / group_.world(), sums[1] > 0 ? SIGTERM : sums[2] > 0 ? SIGINT : 0};
}

base::Status Trainer::validate() {
  at::NoGradGuard no_grad;
  progress_.phase("eval");
  const int64_t batches = std::min(config_.validation.batches, validation_->batches_per_epoch());
  double sum = 0;
  for (int64_t number = 0; number < batches; ++number) {
    const data::Batch batch = validation_->batch(number);
    const model::SummedLoss summed = gpt_->loss(batch.tokens.to(group_.device()), batch.targets.to(group_.device()));
    sum += summed.sum.item<double>() / static_cast<double>(summed.targets);
  }
  validation_loss_ = agree(sum / static_cast<double>(batches), 0).loss;
  TRY(progress_.validation(steps_done(), *validation_loss_));
  progress_.phase("train");
  return base::ok();
}

}  // namespace engine::train
