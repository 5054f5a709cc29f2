// A run that goes slowly: what the pulses of the hosts say, and now and then what their GPUs do. Each thing is told once.
#include "base/json_fields.h"
#include "job/attempt/step.h"
#include "job/facts_bounds.h"

#include <algorithm>
#include <utility>

namespace phalanx::job {

// A stall is told as one: ranks that wait in it are not slow. A look before the threshold is none yet.
bool AttemptStep::stalls() const {
  const Stall& stall = s.stall;
  return stall.stage == Stall::Stage::kTold || (stall.stage != Stall::Stage::kWatching && !stall.early);
}

void AttemptStep::check_slow() {
  SlowWatch& slow = s.slow;
  if (s.phase != Phase::kRunning || stalls() || now - slow.looked_at < kSlowLook) return;
  slow.looked_at = now;
  std::map<int, size_t> ranks;
  for (size_t r = 0; r < s.ranks.size(); ++r)
    if (!s.ranks[r].over()) ranks[static_cast<int>(r)] = static_cast<size_t>(s.plan->host_of(static_cast<int>(r)));
  // While one rank saves or evaluates and the others wait, no steps are made.
  slow.steps.push_back(s.stall.movement.steps());
  if (slow.steps.size() > kStepsLooks) slow.steps.erase(slow.steps.begin());
  const bool steps = !s.stall.movement.steps_known() || slow.steps.back() - slow.steps.front() >= kSharesSteps / 2;
  for (diagnosis::Diagnosis& verdict : slow.stragglers.look(ranks, steps)) tell(Slow{std::move(verdict)});
  std::vector<std::string> names;
  for (const HostRequest& host : job.hosts) names.push_back(host.target.name);
  if (std::optional<diagnosis::Diagnosis> verdict = slow.losses.look(names)) tell(Slow{std::move(*verdict)});
  check_shares();
  if (now < slow.gpus_at) return;
  slow.gpus_at = now + kGpuLook;
  slow.gpus_id = kGpuQuestion | (slow.gpus_id + 1);
  for (size_t h = 0; h < hosts.size(); ++h)
    if (alive(h) && hosts[h].hello.gpus > 0)
      send(h, wire::Sample{slow.gpus_id, false, true, static_cast<uint32_t>(kSamplePatience.count())});
}

// When to look at what the ranks spend their time on: soon after the first steps, and when steps take markedly longer than they did.
void AttemptStep::check_shares() {
  SlowWatch& slow = s.slow;
  if (slow.looks > 0) {
    if (now >= slow.shares_deadline) shares_are_known();
    return;
  }
  if (s.ranks.size() < 2) return;
  const os::nanoseconds step = s.stall.movement.usual_step();
  if (!slow.steps_began && s.stall.movement.steps_known()) {
    slow.steps_began = true;
    slow.shares_at = std::min(slow.shares_at, now + kFirstShares);
  }
  const bool slower =
      slow.usual_step.count() > 0 && static_cast<double>(step.count()) > kSlowerSteps * static_cast<double>(slow.usual_step.count());
  if (now >= slow.shares_at || (slower && now - slow.shares_deadline >= kSharesSoonest)) ask_shares(kFewLooks);
}

void AttemptStep::ask_shares(uint32_t looks) {
  SlowWatch& slow = s.slow;
  slow.looks = looks;
  slow.shares_at = now + (slow.steps_began ? kSharesLater : kSharesWithoutSteps);
  slow.shares_steps = s.stall.movement.steps();
  const os::nanoseconds time = std::clamp<os::nanoseconds>(kSharesSteps * s.stall.movement.usual_step(), kSharesTime, kSharesLongest);
  const auto time_ms = static_cast<uint32_t>(time.count() / 1'000'000);
  slow.shares_deadline = now + time + kSamplePatience + kWireReserve;
  slow.shares_id = kSharesQuestion | ((slow.shares_id + 1) & (kSharesQuestion - 1));
  slow.coming.clear();
  slow.awaited.clear();
  for (size_t h = 0; h < hosts.size(); ++h) {
    if (!alive(h)) continue;
    slow.awaited.insert(h);
    send(h, wire::Sample{slow.shares_id, true, false, time_ms, looks});
  }
}

void AttemptStep::take_shares(size_t h, const wire::Sampled& m) {
  SlowWatch& slow = s.slow;
  if (m.id != slow.shares_id || s.phase != Phase::kRunning || slow.looks == 0 || slow.awaited.erase(h) == 0) return;
  if (base::Result<base::Json> json = parse_from_host(m.json); m.outcome.ok && json.ok())
    if (base::Result<machine::HostSample> sample = base::from_json<machine::HostSample>(*json); sample.ok())
      for (const machine::RankProfile& profile : sample->profiles)
        if (profile.rank >= 0 && is_rank_of(h, static_cast<uint32_t>(profile.rank)))
          slow.coming.push_back(diagnosis::shares_of(profile, h));
  if (slow.awaited.empty()) shares_are_known();
}

// Who seems to be waited for is looked at again, for longer; only then is somebody named.
void AttemptStep::shares_are_known() {
  SlowWatch& slow = s.slow;
  const uint32_t looks = std::exchange(slow.looks, 0);
  slow.usual_step = s.stall.movement.usual_step();
  slow.shares_deadline = now;
  std::sort(slow.coming.begin(), slow.coming.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  const auto living = std::count_if(s.ranks.begin(), s.ranks.end(), [](const RankState& rank) { return !rank.over(); });
  if (slow.coming.size() != static_cast<size_t>(living)) {  // a host that was too busy may answer the next time
    slow.shares_pause = std::clamp<os::nanoseconds>(2 * slow.shares_pause, kSharesSoonest, kSharesLater);
    slow.shares_at = std::min(slow.shares_at, now + slow.shares_pause);
    return;
  }
  slow.shares_pause = {};
  if (stalls()) return;
  slow.shares = std::move(slow.coming);
  const bool steps = s.stall.movement.steps() - slow.shares_steps >= kSharesSteps / 2;
  if (s.stall.movement.steps_known() && !steps) {
    slow.shares_at = now + kSharesSoonest;
    return;
  }
  const bool sure = looks >= kManyLooks;
  std::optional<diagnosis::Straggler> found = diagnosis::straggler(slow.shares, sure ? diagnosis::kManyLooks : diagnosis::kEnoughLooks);
  if (!found) return;
  if (!sure) return ask_shares(kManyLooks);
  const size_t host = found->ranks.front().host;
  if (!s.stall.movement.steps_known() && (slow.suspect != host || now - slow.suspected_at < kSharesWithoutSteps)) {
    if (slow.suspect != host) slow.suspected_at = now;  // it may be a long phase
    slow.suspect = host;
    return;
  }
  slow.gpus_at = now;
  for (diagnosis::Diagnosis& verdict : slow.stragglers.name(*found)) tell(Slow{std::move(verdict)});
}

void AttemptStep::take_pulse(size_t h, const wire::Pulse& pulse) {
  s.slow.stragglers.take(h, pulse);
  s.slow.losses.take(h, pulse, [&](const std::string& address) -> std::optional<size_t> {
    for (size_t other = 0; other < hosts.size(); ++other)
      for (const wire::Address& one : hosts[other].hello.addresses)
        if (one.address == address) return other;
    return std::nullopt;
  });
  s.stall.idleness.take(pulse, now);
}

void AttemptStep::take_gpus(size_t h, const wire::Sampled& m) {
  if (m.id != s.slow.gpus_id || !m.outcome.ok || s.phase != Phase::kRunning) return;
  base::Result<base::Json> json = base::parse_json(m.json);
  if (!json.ok()) return;
  base::Result<machine::HostSample> sample = base::from_json<machine::HostSample>(*json);
  if (!sample.ok()) return;
  std::set<int64_t> pids;
  for (const machine::RankSample& rank : sample->ranks)
    for (const machine::ProcessSample& process : rank.processes) pids.insert(process.pid);
  for (diagnosis::Diagnosis& verdict : s.slow.stragglers.look_at_gpus(h, sample->gpus, pids)) tell(Slow{std::move(verdict)});
}

}  // namespace phalanx::job
