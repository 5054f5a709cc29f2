// When a survey is made, and what its result means for the run.
//
// A start by what an earlier run's checks found. Edit, run, edit, run: minutes ago the same hosts passed the checks for the same job. Such
// a run does not wait for them. Its ranks start at once by the choices of then, and the same checks are made a moment later, while the
// program starts. An error among them stops the run with the verdict that would have refused it; warnings are told as ever.
//
// Not so where waiting is cheaper than being wrong: on hosts with GPUs, which another job may have taken meanwhile; after a failed
// attempt; and where the job's own ranks would be seen by the checks as something in their way (a fixed MASTER_PORT).
#include <algorithm>

#include "job/remembered.h"
#include "job/supervisor/step.h"

namespace phalanx::job {
namespace {

constexpr int kUnfitCode = 3;

// The hosts that the errors speak of; none if one is an error of the job itself or of every host.
std::vector<size_t> blamed(const doctor::Examination& examination, size_t hosts) {
  std::vector<size_t> list;
  for (const doctor::Finding& finding : examination.findings) {
    if (finding.accepted || finding.row->severity != doctor::Severity::kError) continue;
    if (finding.hosts.empty()) return {};
    list.insert(list.end(), finding.hosts.begin(), finding.hosts.end());
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list.size() == hosts ? std::vector<size_t>{} : list;
}

}  // namespace

void Step::all_open() {
  if (checks() && starts_by_memory()) return begin_by_memory();
  if (checks()) return begin_survey();
  if (attempt().make_the_plan()) attempt().prepare_hosts();
}

void Step::begin_survey() {
  if (s.phase == Phase::kOpening) s.phase = Phase::kChecking;
  survey().begin();
  surveyed();
}

// Called after every event that went to the survey. The plan is made by what was chosen; without one `check` reports all the same, and a
// run is refused.
void Step::surveyed() {
  Survey& c = s.survey;
  if (c.stage != Survey::Stage::kSurveyed) return;
  c.stage = Survey::Stage::kDone;
  const bool runs = s.phase == Phase::kRunning;  // the choices and the plan stand
  survey().choose_parts(runs, s.wall_less_mono_ns);
  const bool possible = !(s.job.check_only && s.job.argv.empty()) && all_hosts(s.hosts, [](const HostState& x) { return x.open; });
  if (!runs && possible) attempt().make_the_plan();
  if (!runs && s.phase != Phase::kChecking) return;  // there can be no plan: that is said already
  survey().place(s.plan);
  survey().examine();
  decide(runs);
}

void Step::decide(bool runs) {
  const Survey& c = s.survey;
  auto end = [&](Verdict verdict) { return runs ? attempt().refuse_running(std::move(verdict)) : attempt().finish(std::move(verdict)); };
  Verdict verdict;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    if (!s.hosts[h].refusal) continue;
    verdict.refusals.push_back(*s.hosts[h].refusal);
    verdict.unfit_hosts.push_back(h);
  }
  for (const doctor::Words& refusal : c.choices->refusals)
    verdict.refusals.push_back(base::fail(base::ErrorKind::kUnfit, refusal.english).within("choosing GPUs and addresses"));
  if (!verdict.refusals.empty()) verdict.exit_code = base::exit_code(verdict.refusals.front().kind);
  if (s.job.check_only) {
    verdict.kind = Verdict::Kind::kChecked;
    if (verdict.refusals.empty() && c.examination.errors > 0) verdict.exit_code = kUnfitCode;
    return attempt().finish(std::move(verdict));
  }
  verdict.kind = Verdict::Kind::kRefused;
  if (!verdict.refusals.empty()) return end(std::move(verdict));
  if (c.examination.errors > 0 && s.job.preflight == Preflight::kStrict && !s.job.dry_run) {
    verdict.unfit = true;
    verdict.unfit_hosts = blamed(c.examination, s.hosts.size());
    verdict.exit_code = kUnfitCode;
    return end(std::move(verdict));
  }
  if (c.examination.errors + c.examination.warnings > 0) turn().tell(Concerns{});
  if (!runs) return attempt().prepare_hosts();
  if (survey().measures_later()) survey().begin_speed();
}

bool Step::starts_by_memory() const {
  const Job& job = s.job;
  bool plain = !job.check_only && !job.dry_run && job.attempt == 0 && job.serve_store && job.master_port == 0 && job.master_address.empty();
  return job.remembered && plain && all_hosts(s.hosts, [](const HostState& host) { return host.hello.gpus == 0; }) &&
         holds(*job.remembered, s);
}

void Step::begin_by_memory() {
  Survey& c = s.survey;
  const Remembered& remembered = *s.job.remembered;
  s.phase = Phase::kChecking;
  s.by_memory = true;
  c.situation.hosts.clear();
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const RememberedHost& host = remembered.hosts[h];
    c.situation.hosts.push_back({host.name, true, "", host.facts, {}, 0, 0, "", "", true});  // assigning facts would be 13 kB of code
  }
  Network network{remembered.addresses, remembered.interfaces, remembered.speed_mbps, remembered.network, remembered.routed};
  survey().set_job();
  c.choices = choose(c.situation, survey().wish(), network);
  c.stage = Survey::Stage::kDone;
  if (!attempt().make_the_plan()) return;
  survey().place(s.plan);
  attempt().prepare_hosts();
}

// At every tick: the checks that the start did not wait for.
void Step::check_memory() {
  const Survey& c = s.survey;
  bool due = s.phase == Phase::kRunning && s.by_memory && !c.examined && c.stage == Survey::Stage::kDone;
  if (due && now - s.started_at >= kMeasureAfter) begin_survey();
}

}  // namespace phalanx::job
