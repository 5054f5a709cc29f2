// From the first failure, the operator, or the last rank's end to the verdict.
#include "job/attempt/step.h"

#include <algorithm>

#include <signal.h>

#include <fmt/format.h>

#include "base/text.h"

namespace phalanx::job {

void AttemptStep::take(size_t h, const wire::Exited& m) {
  if (!is_rank_of(h, m.rank)) return;
  RankState& rank = s.ranks[m.rank];
  if (rank.over()) return;
  rank.exited = true;
  rank.status = static_cast<int>(m.status);
  rank.stopped_by_us = m.stopped_by_us;
  rank.at = os::Mono{m.at_ns - hosts[h].clock_offset_ns};
  rank.error_file = m.error_file;
  rank.last_words = m.last_words;
  rank.signs = m.signs;
  if (rank.failed() && s.phase == Phase::kRunning) stop(SIGTERM, false);
  maybe_all_over();
}

void AttemptStep::lost(size_t h, base::Error error, std::optional<wire::GuardEnd> guard) {
  const PlannedHost& planned = s.plan->hosts[h];
  bool any = false;
  for (int r = planned.first_rank; r < planned.first_rank + planned.ranks; ++r) {
    RankState& rank = s.ranks[static_cast<size_t>(r)];
    if (rank.over()) continue;
    rank.lost = any = true;
    rank.at = now;
  }
  if (any && !s.lost_host) {
    s.lost_host = h;
    s.lost_at = now;
    s.lost_error = std::move(error);
    s.lost_guard = guard;
  }
  if (s.phase == Phase::kRunning && any) stop(SIGTERM, false);
  maybe_all_over();
}

std::vector<int> AttemptStep::awaited() const {
  std::vector<int> ranks;
  for (size_t r = 0; r < s.ranks.size(); ++r)
    if (!s.ranks[r].over()) ranks.push_back(static_cast<int>(r));
  return ranks;
}

void AttemptStep::interrupt() {
  ++s.operator_signals;
  if (s.phase == Phase::kFinishing || s.phase == Phase::kEnded) return;
  if (s.phase < Phase::kRunning) {
    Verdict verdict;
    verdict.kind = Verdict::Kind::kInterrupted;
    verdict.exit_code = base::exit_code(base::ErrorKind::kInterrupted);
    return finish(std::move(verdict));
  }
  if (s.operator_signals > 1) return kill(true);
  if (s.phase == Phase::kRunning) return stop(SIGTERM, true);
  tell(StoppingRanks{SIGTERM, awaited(), job.grace, true});
}

// The end of a survey that was made while ranks ran.
void AttemptStep::refuse_running(Verdict verdict) {
  if (!s.verdict) s.verdict = std::move(verdict);
  stop(SIGTERM, false);
}

void AttemptStep::stop(int signal_number, bool by_operator) {
  if (s.phase != Phase::kRunning) return;
  s.phase = Phase::kStopping;
  std::chrono::milliseconds grace = by_operator ? job.grace : job.failure_grace;
  s.stop_at = now + grace;
  for (size_t h = 0; h < hosts.size(); ++h)
    if (alive(h)) send(h, wire::Signal{static_cast<uint8_t>(signal_number)});
  std::vector<int> ranks = awaited();
  if (by_operator || !ranks.empty()) tell(StoppingRanks{signal_number, std::move(ranks), grace, by_operator});
  maybe_all_over();
}

void AttemptStep::kill(bool by_operator) {
  if (s.killed || s.phase != Phase::kStopping) return;
  s.killed = true;
  tell(KillingRanks{awaited(), by_operator});
  for (size_t h = 0; h < hosts.size(); ++h)
    if (alive(h)) send(h, wire::Signal{SIGKILL});
  s.stop_at = now + kKillPatience;
}

void AttemptStep::maybe_all_over() {
  if (s.phase != Phase::kRunning && s.phase != Phase::kStopping) return;
  if (std::all_of(s.ranks.begin(), s.ranks.end(), [](const RankState& r) { return r.over(); })) finish(std::nullopt);
}

void AttemptStep::finish(std::optional<Verdict> verdict) {
  if (s.phase == Phase::kFinishing || s.phase == Phase::kEnded) return;
  if (verdict && !s.verdict) s.verdict = std::move(verdict);
  s.phase = Phase::kFinishing;
  s.deadline = now + kFinishPatience;
  actions.push_back(AbandonOpening{});
  for (size_t h = 0; h < hosts.size(); ++h)
    if (alive(h)) send(h, wire::Finish{});
  maybe_finished();
}

void AttemptStep::take(size_t h, const wire::Finished& m) {
  if (s.phase != Phase::kFinishing) return;  // nobody has asked
  hosts[h].finished = true;
  hosts[h].left = m.left;
  if (m.killed > 0 || m.left > 0) tell(HostLeftovers{h, static_cast<int>(m.killed), static_cast<int>(m.left)});
  maybe_finished();
}

void AttemptStep::maybe_finished() {
  if (s.phase != Phase::kFinishing) return;
  bool all = all_hosts(hosts, [](const HostState& x) { return x.finished || x.ended || !x.open || x.silent; });
  if (!all && now < *s.deadline) return;
  s.phase = Phase::kEnded;
  Verdict ends = judge(s, hosts);
  if (s.verdict && s.verdict->kind == Verdict::Kind::kHung) {
    s.verdict->stopped = ends.stopped;
    s.verdict->lost = ends.lost;
  }
  actions.push_back(End{s.verdict ? *s.verdict : std::move(ends)});
}

}  // namespace phalanx::job
