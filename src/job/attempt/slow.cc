// A run that goes slowly: what the pulses of the hosts say, and now and then what their GPUs do. Each thing is told once.
#include "base/json_fields.h"
#include "job/attempt/step.h"

namespace phalanx::job {

void AttemptStep::check_slow() {
  SlowWatch& slow = s.slow;
  // A stall is told as one: ranks that wait in it are not slow.
  if (s.phase != Phase::kRunning || s.stall.stage != Stall::Stage::kWatching || now - slow.looked_at < kSlowLook) return;
  slow.looked_at = now;
  std::map<int, size_t> ranks;
  for (size_t r = 0; r < s.ranks.size(); ++r)
    if (!s.ranks[r].over()) ranks[static_cast<int>(r)] = static_cast<size_t>(s.plan->host_of(static_cast<int>(r)));
  for (diagnosis::Diagnosis& verdict : slow.stragglers.look(ranks)) tell(Slow{std::move(verdict)});
  if (now < slow.gpus_at) return;
  slow.gpus_at = now + kGpuLook;
  slow.gpus_id = kGpuQuestion | (slow.gpus_id + 1);
  for (size_t h = 0; h < hosts.size(); ++h)
    if (alive(h) && hosts[h].hello.gpus > 0)
      send(h, wire::Sample{slow.gpus_id, false, true, static_cast<uint32_t>(kSamplePatience.count())});
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
