#include "job/copy/packing_effort.h"

#include <algorithm>

namespace phalanx::job {
namespace {

constexpr os::nanoseconds kLook = os::milliseconds(250);
constexpr double kAllOfIt = 0.9;                               // of the time, which packing takes: it is what is waited for
constexpr double kPackingTimes[base::kEfforts] = {1, 2, 4.4};  // that packing takes, as measured (base/packing.h)
constexpr double kLeastIdle = 0.15;                            // of the time of all processors
constexpr double kGain = 1.03;                                 // a trial is kept for
constexpr size_t kLeastPatience = 4, kMostPatience = 128;      // looks between trials: 1 s, and twice as long after each that gave nothing

double share(int64_t part, int64_t all) { return static_cast<double>(part) / static_cast<double>(all); }

}  // namespace

void PackingEffort::begin_again(os::Mono at, machine::CpuTimes cpus) {
  since_ = at;
  cpus_before_ = cpus;
  bytes_ = 0;
  busy_ = {};
}

void PackingEffort::judge(double rate) {
  const bool up = number_ > trial_->before, better = rate > kGain * trial_->rate;
  // To and fro can each seem to give something, because full buffers hide for a moment what is lost.
  const bool further = better && up == kept_up_;
  if (better) kept_up_ = up;
  else number_ = trial_->before;
  patience_ = further ? 0 : std::clamp(2 * patience_, kLeastPatience, kMostPatience);
  next_trial_ = looks_ + patience_;
  trial_.reset();
}

void PackingEffort::made(uint64_t bytes, os::Mono begin, os::Mono end) {
  if (since_.ns == 0) begin_again(begin, cpus_());
  bytes_ += bytes;
  busy_ += end - begin;
  const os::nanoseconds passed = end - since_;
  if (passed < kLook) return;
  ++looks_;
  const double rate = 1e9 * share(static_cast<int64_t>(bytes_), passed.count());
  const double busy = share(busy_.count(), passed.count());
  const machine::CpuTimes cpus = cpus_();
  const int64_t all = cpus.all - cpus_before_.all;
  const bool cpus_busy = all > 0 && share(cpus.idle - cpus_before_.idle, all) < kLeastIdle;
  begin_again(end, cpus);
  if (trial_) return judge(rate);
  if (looks_ < next_trial_) return;
  const bool room = !cpus_busy && number_ + 1 < base::kEfforts && busy * kPackingTimes[number_ + 1] < kPackingTimes[number_];
  const bool too_much = number_ > 0 && (busy > kAllOfIt || cpus_busy);
  if (!room && !too_much) return;
  trial_ = Trial{number_, rate};
  number_ = too_much ? number_ - 1 : number_ + 1;
}

}  // namespace phalanx::job
