// From the first failure, the operator, or the last rank's end to the verdict.
#include "job/supervisor/step.h"

#include <algorithm>

#include <signal.h>

#include <fmt/format.h>

#include "base/text.h"

namespace phalanx::job {
namespace {

constexpr os::milliseconds kSlept{2500};  // between two ticks: we did not run
constexpr os::milliseconds kLate{700};    // we ran too late for a deadline of the checks
constexpr os::milliseconds kForsakenMargin{
    2000};  // the last ping before we slept was sent up to a second earlier, and agents look twice a second

base::Error suspended_error(os::nanoseconds slept, os::milliseconds lease) {
  auto time = [](os::nanoseconds t) { return base::format_duration(std::chrono::duration_cast<os::milliseconds>(t)); };
  return base::fail(base::ErrorKind::kUnreachable, "the launcher was suspended for " + time(slept))
      .because("its hosts stop their ranks after losing contact with the launcher for " + time(lease))
      .with_hint("keep the machine of the launcher awake, or allow more time: --lease " +
                 time(std::max<os::nanoseconds>(2 * slept, lease)));
}

}  // namespace

// How long we had not run, when what happens now comes of that.
os::nanoseconds Step::slept_for() const { return now - s.woke_at < kHostPatience ? s.slept : os::nanoseconds(0); }

void Step::on(const HostEnded& event) {
  size_t h = event.host;
  HostState& host = s.hosts[h];
  if (host.ended) return;
  host.ended = true;
  host.ended_at = now;
  host.forsaken = slept_for() + kForsakenMargin >= s.job.lease;
  if (s.phase == Phase::kFinishing) return maybe_finished();
  if (s.phase == Phase::kEnded) return;
  if (s.job.check_only) return host_missed(h, event.error);
  base::Error error = host.forsaken ? suspended_error(slept_for(), s.job.lease) : event.error;
  if (s.phase < Phase::kRunning) return refuse(h, std::move(error));
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
    s.lost_guard = event.guard;
  }
  if (s.phase == Phase::kRunning && any) stop(SIGTERM, false);
  maybe_all_over();
}

// Asked only while ranks run: before, an agent may be busy with what it was told to do.
bool Step::deaf(const HostState& host) const {
  if (s.phase != Phase::kRunning || host.heard_since >= kTalkative) return false;
  return now - std::max(host.answered, s.started_at) >= kHostPatience;
}

// Called for every event, before anything is judged by a clock: the loop looks at its descriptors before its timers, so that the end of a
// host may be the first thing we see after waking. While we did not run, nothing could be heard of anybody, and no time of theirs has
// passed.
void Step::notice_sleep() {
  const os::nanoseconds gap = now - s.ticked;
  if (gap <= kLate) return;
  s.ticked = now;
  if (s.checks.deadline) s.checks.deadline = *s.checks.deadline + gap;
  if (gap <= kSlept) return;
  s.slept = gap;
  s.woke_at = now;
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (alive(h)) s.hosts[h].heard = s.hosts[h].answered = now;
}

void Step::check_silence() {
  s.ticked = now;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    HostState& host = s.hosts[h];
    if (!alive(h)) continue;
    if (now - host.pinged >= kPingEvery) ping(h);
    const bool silent = now - host.heard >= kHostPatience;
    if (!silent && !deaf(host)) continue;
    actions.push_back(CutHost{h});
    const std::string why = silent ? "no response for {} s: the host is down, hung, or unreachable"
                                   : "no answer for {} s, although data still arrives from the host: data sent to it does not arrive";
    base::Error lost = base::fail(base::ErrorKind::kUnreachable, s.job.hosts[h].target.name + ": lost contact with the host")
                           .because(fmt::format(fmt::runtime(why), kHostPatience.count() / 1000))
                           .with_hint("ping -c 3 " + s.job.hosts[h].target.name);
    on(HostEnded{h, std::move(lost)});
  }
}

std::vector<int> Step::awaited() const {
  std::vector<int> ranks;
  for (size_t r = 0; r < s.ranks.size(); ++r)
    if (!s.ranks[r].over()) ranks.push_back(static_cast<int>(r));
  return ranks;
}

void Step::on(const OperatorSignal& event) {
  ++s.operator_signals;
  if (event.grace) s.job.grace = *event.grace;
  if (s.phase == Phase::kFinishing || s.phase == Phase::kEnded) return;
  if (s.phase < Phase::kRunning) {
    Verdict verdict;
    verdict.kind = Verdict::Kind::kInterrupted;
    verdict.exit_code = base::exit_code(base::ErrorKind::kInterrupted);
    return finish(std::move(verdict));
  }
  if (s.operator_signals > 1) return kill(true);
  if (s.phase == Phase::kRunning) return stop(SIGTERM, true);
  tell(StoppingRanks{SIGTERM, awaited(), s.job.grace, true});
}

void Step::stop(int signal_number, bool by_operator) {
  if (s.phase != Phase::kRunning) return;
  s.phase = Phase::kStopping;
  std::chrono::milliseconds grace = by_operator ? s.job.grace : s.job.failure_grace;
  s.stop_at = now + grace;
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (alive(h)) send(h, wire::Signal{static_cast<uint8_t>(signal_number)});
  std::vector<int> ranks = awaited();
  if (by_operator || !ranks.empty()) tell(StoppingRanks{signal_number, std::move(ranks), grace, by_operator});
  maybe_all_over();
}

void Step::kill(bool by_operator) {
  if (s.killed || s.phase != Phase::kStopping) return;
  s.killed = true;
  tell(KillingRanks{awaited(), by_operator});
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (alive(h)) send(h, wire::Signal{SIGKILL});
  s.stop_at = now + kKillPatience;
}

void Step::maybe_all_over() {
  if (s.phase != Phase::kRunning && s.phase != Phase::kStopping) return;
  if (std::all_of(s.ranks.begin(), s.ranks.end(), [](const RankState& r) { return r.over(); })) finish(std::nullopt);
}

void Step::finish(std::optional<Verdict> verdict) {
  if (s.phase == Phase::kFinishing || s.phase == Phase::kEnded) return;
  if (verdict && !s.verdict) s.verdict = std::move(verdict);
  s.phase = Phase::kFinishing;
  s.deadline = now + kFinishPatience;
  actions.push_back(AbandonOpening{});
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (alive(h)) send(h, wire::Finish{});
  maybe_finished();
}

void Step::take(size_t h, const wire::Finished& m) {
  if (s.phase != Phase::kFinishing) return;  // nobody has asked
  s.hosts[h].finished = true;
  s.hosts[h].left = m.left;
  if (m.killed > 0 || m.left > 0) tell(HostLeftovers{h, static_cast<int>(m.killed), static_cast<int>(m.left)});
  maybe_finished();
}

void Step::maybe_finished() {
  if (s.phase != Phase::kFinishing) return;
  bool all = all_hosts(s, [](const HostState& x) { return x.finished || x.ended || !x.open || x.silent; });
  if (!all && now < *s.deadline) return;
  s.phase = Phase::kEnded;
  Verdict ends = judge(s);
  if (s.verdict && s.verdict->kind == Verdict::Kind::kHung) {
    s.verdict->stopped = ends.stopped;
    s.verdict->lost = ends.lost;
  }
  actions.push_back(End{s.verdict ? *s.verdict : std::move(ends)});
}

}  // namespace phalanx::job
