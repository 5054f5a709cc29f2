#include "agent/sweep_duty.h"

#include <signal.h>

#include <algorithm>

namespace agent {

SweepDuty::~SweepDuty() {
  if (timer_) loop_.cancel(timer_);
}

void SweepDuty::start(const wire::Sweep& sweep) {
  run_id_ = sweep.run_id;
  kill_at_ = os::mono_now() + os::milliseconds(std::min<int64_t>(sweep.patience_ms, kLongestPatienceMs));
  seen_.clear();
  killed_.clear();
  if (timer_) loop_.cancel(timer_);
  timer_ = loop_.after(os::nanoseconds(0), [this] { look(); });
}

void SweepDuty::look() {
  timer_ = 0;
  std::vector<host::RunProcess> left = host::run_processes("", run_id_, kBudget);
  os::Mono now = os::mono_now();
  bool over = now > kill_at_ + kKillTime;
  for (const host::RunProcess& p : left) {
    seen_[{p.pid, p.start_ticks}] = p.command;
    if (now < kill_at_) continue;
    killed_[{p.pid, p.start_ticks}] = p.command;
    if (!over) ::kill(static_cast<pid_t>(p.pid), SIGKILL);
  }
  if (!left.empty() && !over) {
    timer_ = loop_.after(kLook, [this] { look(); });
    return;
  }
  wire::Swept swept;
  for (const auto& [name, command] : killed_) {
    auto same = [&name = name](const host::RunProcess& p) { return p.pid == name.first && p.start_ticks == name.second; };
    bool gone = std::none_of(left.begin(), left.end(), same);
    if (swept.found.size() < wire::kMaxSwept || !gone)
      swept.found.push_back({static_cast<uint32_t>(name.first), command.substr(0, wire::kMostSweptBytes), gone});
  }
  if (swept.found.size() > wire::kMaxSwept) {  // what could not be ended is worth more than what could
    std::stable_sort(swept.found.begin(), swept.found.end(), [](auto& a, auto& b) { return a.gone < b.gone; });
    swept.found.resize(wire::kMaxSwept);
  }
  swept.waited_for = static_cast<uint32_t>(seen_.size() - killed_.size());
  done_(swept);
}

}  // namespace agent
