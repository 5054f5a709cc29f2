#include "job/copy/packing_effort.h"

namespace phalanx::job {
namespace {

constexpr os::nanoseconds kLook = os::milliseconds(250);
// Shares of the time. A link is slowed as soon as packing needs all of it, and what more effort takes is only guessed.
constexpr double kMostForMore = 0.7;
constexpr double kTooMuch = 0.9;
constexpr double kLeastIdle = 0.15;  // of the time of all processors

double share(int64_t part, int64_t all) { return static_cast<double>(part) / static_cast<double>(all); }

}  // namespace

void PackingEffort::begin_again(os::Mono at, machine::CpuTimes cpus) {
  since_ = at;
  cpus_before_ = cpus;
  bytes_ = 0;
  busy_ = {};
}

void PackingEffort::made(uint64_t bytes, os::Mono begin, os::Mono end) {
  if (since_.ns == 0) begin_again(begin, cpus_());
  bytes_ += bytes;
  busy_ += end - begin;
  if (end - since_ < kLook) return;
  const machine::CpuTimes cpus = cpus_();
  const int64_t all = cpus.all - cpus_before_.all;
  const bool cpus_busy = all > 0 && share(cpus.idle - cpus_before_.idle, all) < kLeastIdle;
  const auto number = static_cast<size_t>(now_);
  const double busy = share(busy_.count(), (end - since_).count());
  ns_[number] = share(busy_.count(), static_cast<int64_t>(bytes_));
  if ((busy > kTooMuch || cpus_busy) && number > 0) now_ = static_cast<base::Effort>(number - 1);
  else if (!cpus_busy && number + 1 < base::kEfforts && busy * ns_[number + 1] < kMostForMore * ns_[number])
    now_ = static_cast<base::Effort>(number + 1);
  begin_again(end, cpus);
}

}  // namespace phalanx::job
