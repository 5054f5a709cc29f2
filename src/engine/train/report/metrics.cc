#include "engine/train/report/metrics.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <vector>

#include "base/counted.h"

namespace phalanx::engine::train {
namespace {

constexpr double kMuchData = 0.2;  // share of steps
constexpr double kLongEnough = 1;  // seconds of steps; what is shorter tells nothing
constexpr std::array kPhases{"eval", "save", "sample"};

std::string short_number(double value) {
  if (value >= 1e6) return fmt::format("{:.2f}M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.1f}k", value / 1e3);
  return fmt::format("{:.0f}", value);
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string data_warning(const RunTimes& times, const RunFacts& facts) {
  const double share = percent(times.sum.data, times.sum.all());
  if (share <= 100 * kMuchData) return "";
  return fmt::format("warning: reading data took {:.0f} % of the step time", share) +
         fmt::format("\nhint: {}\n", facts.data_workers == 0
                                         ? "set data.workers=2 to prefetch data while the ranks compute"
                                         : "raise data.workers, or data.prefetch if some steps take much longer to read than others");
}

std::string waiting_warning(const RunTimes& times, const RunFacts& facts) {
  if (facts.ranks == 1 || times.sum.waiting() <= times.sum.compute()) return "";
  return fmt::format("warning: rank 0 spent more of the step time waiting for other ranks ({:.0f} %) than computing ({:.0f} %)",
                     percent(times.sum.waiting(), times.sum.all()), percent(times.sum.compute(), times.sum.all())) +
         fmt::format("\nhint: {}\n", facts.sharded ? "use fewer ranks, a larger train.batch, or parallel.mode=ddp if memory allows"
                                                   : "use fewer ranks, or a larger train.batch");
}

}  // namespace

void Means::add(const StepReport& report) {
  ++steps_;
  tokens_ += static_cast<double>(report.targets);
  overlap_ += report.overlap;
  loss_ += report.loss;
  sum_ += report.times;
}

StepTimes Means::times() const { return steps_ > 0 ? sum_ / static_cast<double>(steps_) : sum_; }

double Means::mfu(const RunFacts& facts) const {
  return facts.peak_flops > 0 ? tokens_per_s() * facts.flops_per_token / facts.peak_flops : 0;
}

base::Json log_line(const StepReport& last, const Means& means, const RunFacts& facts, int64_t skipped) {
  const StepTimes times = means.times();
  base::Json line = {{"step", last.step}, {"loss", last.loss},           {"loss_mean", means.loss()},
                     {"lr", last.lr},     {"grad_norm", last.grad_norm}, {"tokens_per_s", means.tokens_per_s()}};
  if (facts.peak_flops > 0) line["mfu"] = means.mfu(facts);
  line["seconds"] = {{"step", times.all()},        {"data", times.data},           {"exchange", times.exchange}, {"forward", times.forward},
                     {"backward", times.backward}, {"optimizer", times.optimizer}, {"waited", times.waited}};
  if (times.rest > 0) line["seconds"]["rest"] = times.rest;
  line["overlap"] = means.overlap();
  line["memory"] = {{"resident", last.resident_bytes},   {"resident_peak", last.resident_peak}, {"parameters", facts.parameter_bytes},
                    {"gradients", facts.gradient_bytes}, {"buffers", facts.carrier_bytes},      {"optimizer", facts.optimizer_bytes}};
  line["skipped"] = skipped;
  if (last.loss_scale > 0) line["loss_scale"] = last.loss_scale;
  return line;
}

std::vector<Scalar> scalars(const StepReport& last, const Means& means, const RunFacts& facts) {
  const StepTimes times = means.times();
  std::vector<Scalar> all = {{"train/loss", last.loss},
                             {"train/lr", last.lr},
                             {"train/grad_norm", last.grad_norm},
                             {"train/tokens_per_s", means.tokens_per_s()},
                             {"train/overlap", means.overlap()},
                             {"time/step", times.all()},
                             {"time/data", times.data},
                             {"time/exchange", times.exchange},
                             {"time/forward", times.forward},
                             {"time/backward", times.backward},
                             {"time/optimizer", times.optimizer},
                             {"time/waited", times.waited},
                             {"memory/resident", static_cast<double>(last.resident_bytes)},
                             {"memory/resident_peak", static_cast<double>(last.resident_peak)}};
  if (facts.peak_flops > 0) all.push_back({"train/mfu", means.mfu(facts)});
  if (last.loss_scale > 0) all.push_back({"train/loss_scale", last.loss_scale});
  return all;
}

std::string terminal_line(const StepReport& last, const Means& means, const RunFacts& facts, int64_t total, double eta_s) {
  std::string line = fmt::format("step {}/{}  loss {:.4f}  lr {:.1e}  norm {:.2f}  {} tokens/s", last.step, total, last.loss, last.lr,
                                 last.grad_norm, short_number(means.tokens_per_s()));
  if (facts.peak_flops > 0) line += fmt::format("  mfu {:.{}f} %", 100 * means.mfu(facts), means.mfu(facts) < 0.0995 ? 1 : 0);
  if (last.step < total) line += "  eta " + short_duration(eta_s);
  return line + "\n";
}

std::string summary(const RunTimes& times, const RunFacts& facts) {
  if (times.steps == 0 || times.all <= 0) return "";
  const StepTimes& sum = times.sum;
  // Waiting is a part of backward and optimizer that cannot be told apart afterwards; it is taken off both in proportion.
  const double both = sum.backward + sum.optimizer;
  const double computed = both > 0 ? std::max(0.0, 1 - sum.waited / both) : 0;
  std::vector<std::string> parts;
  auto part = [&](std::string text) { parts.push_back(std::move(text)); };
  part(fmt::format("data {:.0f} %", percent(sum.data, times.all)));
  part(fmt::format("forward {:.0f} %", percent(sum.forward, times.all)));
  part(fmt::format("backward {:.0f} %", percent(sum.backward * computed, times.all)));
  part(fmt::format("optimizer {:.0f} %", percent(sum.optimizer * computed, times.all)));
  if (facts.ranks > 1) part(fmt::format("waiting for other ranks {:.0f} %", percent(sum.waiting(), times.all)));
  double told = sum.all() - sum.rest;
  for (const char* phase : kPhases) {
    auto found = times.phases.find(phase);
    if (found == times.phases.end()) continue;
    const double share = percent(found->second, times.all);
    part(found->first == "eval"   ? fmt::format("validation {:.0f} %", share)
         : found->first == "save" ? fmt::format("saving {:.0f} %", share)
                                  : fmt::format("sample {:.0f} %", share));
    told += found->second;
  }
  if (const double rest = percent(times.all - told, times.all); rest >= 1) part(fmt::format("other {:.0f} %", rest));
  std::string text = base::counted("{} steps in {}: {}", times.steps, short_duration(times.all), fmt::join(parts, ", "));
  text += '\n';
  if (sum.all() < kLongEnough) return text;
  return text + data_warning(times, facts) + waiting_warning(times, facts);
}

std::string short_duration(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) return "?";
  const auto s = static_cast<int64_t>(std::llround(seconds));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  return fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24);
}

}  // namespace phalanx::engine::train
