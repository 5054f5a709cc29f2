// A start by what an earlier run's checks found. Edit, run, edit, run: minutes ago the same hosts passed the checks for the same job. Such
// a run does not wait for them. Its ranks start at once by the choices of then, and the same checks are made a moment later, while the
// program starts. An error among them stops the run with the verdict that would have refused it; warnings are told as ever.
//
// Not so where waiting is cheaper than being wrong: on hosts with GPUs, which another job may have taken meanwhile; after a failed
// attempt; and where the job's own ranks would be seen by the checks as something in their way (a fixed MASTER_PORT).
#include <signal.h>

#include <algorithm>

#include "job/remembered.h"
#include "job/survey/parts.h"
#include "job/supervisor/step.h"

namespace phalanx::job {

bool Step::checking() const {
  if (s.phase == Phase::kChecking) return s.checks.stage != Checks::Stage::kDone;
  using Stage = Checks::Stage;
  bool asking = s.checks.stage == Stage::kProbing || s.checks.stage == Stage::kListening || s.checks.stage == Stage::kDialing;
  return s.phase == Phase::kRunning && s.checks.by_memory && asking;
}

bool Step::starts_by_memory() const {
  const Job& job = s.job;
  bool plain = !job.check_only && !job.dry_run && job.attempt == 0 && job.serve_store && job.master_port == 0 && job.master_address.empty();
  return job.remembered && plain && all_hosts(s, [](const HostState& host) { return host.hello.gpus == 0; }) && holds(*job.remembered, s);
}

void Step::begin_by_memory() {
  Checks& c = s.checks;
  const Remembered& remembered = *s.job.remembered;
  s.phase = Phase::kChecking;
  c.by_memory = true;
  c.situation.hosts.resize(s.hosts.size());
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    c.situation.hosts[h].name = remembered.hosts[h].name;
    c.situation.hosts[h].facts = remembered.hosts[h].facts;
    c.situation.hosts[h].probed = true;
  }
  Network network{remembered.addresses, remembered.interfaces, remembered.speed_mbps, remembered.network, remembered.routed};
  c.situation.job = job_view(s.job);
  c.choices = choose(c.situation, wish_of(s), network);
  c.stage = Checks::Stage::kDone;
  settle_plan();
  if (s.phase == Phase::kChecking) prepare_hosts();
}

// At every tick: the checks that the start did not wait for.
void Step::check_memory() {
  Checks& c = s.checks;
  bool due = s.phase == Phase::kRunning && c.by_memory && !c.examined && c.stage == Checks::Stage::kDone;
  if (due && now - s.started_at >= kMeasureAfter) begin_checks();
}

// The end of checks that were made while ranks ran.
void Step::refuse_running(Verdict verdict) {
  if (!s.verdict) s.verdict = std::move(verdict);
  stop(SIGTERM, false);
}

}  // namespace phalanx::job
