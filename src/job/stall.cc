#include "job/stall.h"

#include <algorithm>
#include <array>

#include "logs/step_line.h"

namespace phalanx::job {
namespace {

constexpr size_t kKeptSteps = 64;
constexpr os::milliseconds kSearchEvery{100};  // of one rank's output: a flood of lines costs no more than its last ones
constexpr size_t kSearchedBytes = 2048;
constexpr uint64_t kIdlePercent = 4;  // of one CPU
constexpr os::milliseconds kFirstPause{2000}, kLongestPause{60'000};

// Of the last line that tells one.
std::optional<int64_t> last_step_in(std::string_view text) {
  while (!text.empty()) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
    size_t begin = text.find_last_of("\r\n");
    std::string_view line = begin == std::string_view::npos ? text : text.substr(begin + 1);
    if (std::optional<int64_t> number = logs::step_in(line)) return number;
    text = begin == std::string_view::npos ? std::string_view() : text.substr(0, begin);
  }
  return std::nullopt;
}

}  // namespace

void Idleness::take(const wire::Pulse& pulse, os::Mono now) {
  if (pulse.window_ms == 0) return;
  for (const wire::RankPulse& rank : pulse.ranks) {
    const bool rests = rank.state == 'S' || rank.state == 'T' || rank.state == 't';
    bool idle = rests && rank.cpu_ms * uint64_t{100} <= pulse.window_ms * uint64_t{kIdlePercent};
    idle_[static_cast<int>(rank.rank)] = idle;
    if (idle) continue;
    pause_ = {};
    again_at_ = now;
  }
}

bool Idleness::all_idle(const std::vector<int>& ranks) const {
  return !ranks.empty() && std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    auto found = idle_.find(rank);
    return found != idle_.end() && found->second;
  });
}

void Idleness::proved_nothing(os::Mono now) {
  pause_ = std::clamp<os::nanoseconds>(2 * pause_, kFirstPause, kLongestPause);
  again_at_ = now + pause_;
}

void Movement::begin(os::Mono now) {
  *this = {};
  moved_ = now;
}

void Movement::pause(os::Mono now) { moved_ = now; }

void Movement::step(int rank, int64_t number, os::Mono now) {
  Rank& r = ranks_[rank];
  if (r.step && *r.step == number) return;
  os::nanoseconds took = now - r.stepped;
  bool again = r.step.has_value();
  r.step = number;
  r.stepped = moved_ = now;
  if (!again) return;
  if (!timed_) timed_ = rank;
  if (*timed_ != rank) return;
  ++count_;
  if (steps_.size() < kKeptSteps) steps_.push_back(took);
  else steps_[next_++ % kKeptSteps] = took;
}

void Movement::output(int rank, std::string_view text, bool bar, os::Mono now) {
  if (!steps_known()) moved_ = now;
  Rank& r = ranks_[rank];
  text = text.substr(text.size() - std::min(text.size(), kSearchedBytes));
  if (now - r.searched < kSearchEvery && !bar) {
    r.unsearched = text;
    return;
  }
  r.searched = now;
  r.unsearched.clear();
  if (std::optional<int64_t> number = last_step_in(text)) step(rank, *number, now);
}

std::optional<os::nanoseconds> Movement::threshold(const StallOptions& options) const {
  if (options.threshold) return options.threshold->count() == 0 ? std::nullopt : std::optional<os::nanoseconds>(*options.threshold);
  if (!steps_known()) return kSilentStall;
  std::vector<os::nanoseconds> sorted = steps_;
  std::sort(sorted.begin(), sorted.end());
  os::nanoseconds p95 = sorted[(sorted.size() * 95 + 99) / 100 - 1];
  return std::max<os::nanoseconds>(kLeastStall, kStallSteps * p95);
}

os::nanoseconds Movement::usual_step() const {
  constexpr size_t kLast = 8;
  if (steps_.size() < kLast) return {};
  std::array<os::nanoseconds, kLast> last;
  for (size_t i = 0; i < kLast; ++i) last[i] = steps_[(next_ + steps_.size() - 1 - i) % steps_.size()];
  std::nth_element(last.begin(), last.begin() + kLast / 2, last.end());
  return last[kLast / 2];
}

std::optional<int64_t> Movement::last_step(int rank) const {
  auto found = ranks_.find(rank);
  if (found == ranks_.end()) return std::nullopt;
  std::optional<int64_t> newer = last_step_in(found->second.unsearched);
  return newer ? newer : found->second.step;
}

}  // namespace phalanx::job
