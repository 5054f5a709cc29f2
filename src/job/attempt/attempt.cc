// What ranks say while they run, and the tick.
#include "job/attempt/attempt.h"

#include "job/attempt/step.h"

namespace phalanx::job {

void AttemptStep::take(size_t h, const wire::Connected& m) {
  if (is_rank_of(h, m.rank)) s.ranks[m.rank].connected = true;
}

void AttemptStep::take(const HostReported& event) {
  if (auto* output = std::get_if<wire::Output>(&event.report)) {
    s.stall.movement.output(static_cast<int>(output->rank), output->data, output->kind == wire::OutputKind::kProgress, now);
  } else if (auto* pulse = std::get_if<wire::Pulse>(&event.report)) {
    take_pulse(event.host, *pulse);
  } else if (auto& advanced = std::get<RankAdvanced>(event.report); advanced.progress.step) {
    s.ranks[advanced.rank].step = advanced.progress.step;
    s.stall.movement.step(static_cast<int>(advanced.rank), *advanced.progress.step, now);
  }
}

void AttemptStep::check_store() {
  if (s.phase != Phase::kRunning || now - s.started_at < kStoreSilence) return;
  if (s.store_told_at && now - *s.store_told_at < 3 * kStoreSilence) return;
  std::vector<int> missing;
  bool any = false;
  for (size_t r = 0; r < s.ranks.size(); ++r) {
    any = any || s.ranks[r].connected;
    if (!s.ranks[r].connected && !s.ranks[r].over()) missing.push_back(static_cast<int>(r));
  }
  if (!any || missing.empty()) return;  // nobody uses the store, or everybody has met it
  s.store_told_at = now;
  tell(WaitingForStore{std::move(missing)});
}

void AttemptStep::tick() {
  check_store();
  check_stall();
  check_slow();
  if (s.phase == Phase::kStopping && now >= *s.stop_at) {
    if (!s.killed) kill(false);
    else finish(std::nullopt);
  }
  maybe_finished();
}

// Asked for every frame of output: without a search over the hosts.
bool is_rank_of(const Attempt& attempt, size_t host, uint32_t rank) {
  if (attempt.phase < Phase::kRunning || !attempt.plan || rank >= attempt.ranks.size() || host >= attempt.plan->hosts.size()) return false;
  int64_t after_first = static_cast<int64_t>(rank) - attempt.plan->hosts[host].first_rank;
  return after_first >= 0 && after_first < attempt.plan->hosts[host].ranks;
}

}  // namespace phalanx::job
