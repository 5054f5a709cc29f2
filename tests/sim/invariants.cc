// What must hold for any run, whatever happens.
#include "world.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace phalanx::sim {

using VerdictKind = job::Verdict::Kind;
using Kind = Fault::Kind;

// Every rank is started once per attempt, by a host of the attempt, and no rank of an earlier attempt is alive then.
void World::check_start(const Agent& agent, const wire::Start& m) {
  if (agent.number != run_.number) return;  // late, of an attempt that is over: its lease ends it
  std::vector<bool>& started = started_[agent.number];
  started.resize(run_.attempt.ranks.size());
  for (const wire::RankSpec& spec : m.ranks) {
    if (spec.rank >= started.size()) return problem(fmt::format("rank {} of {} was started", spec.rank, started.size()));
    if (started[spec.rank]) problem(fmt::format("rank {} was started twice", spec.rank));
    started[spec.rank] = true;
  }
  for (const auto& rank : ranks_)
    if (rank->alive && rank->number < agent.number && !rank->unkillable)
      problem(fmt::format("rank {} of attempt {} is alive when attempt {} starts", rank->rank, rank->number, agent.number));
}

void World::check_run() {
  if (run_.restarts > run_.job.max_restarts) problem("more restarts than allowed");
  size_t least = run_.job.least_hosts > 0 ? static_cast<size_t>(run_.job.least_hosts) : run_.job.hosts.size();
  if (run_.members.size() < least || run_.members.size() > run_.job.hosts.size())
    problem(fmt::format("{} hosts in an attempt, of {} to {}", run_.members.size(), least, run_.job.hosts.size()));
  if (checked_members_ != run_.members) {  // a set of thousands after every event would be most of a big run's time
    checked_members_ = run_.members;
    if (std::set<size_t>(run_.members.begin(), run_.members.end()).size() != run_.members.size()) problem("a host is twice in an attempt");
  }
  bool stuck = std::any_of(scenario_.faults.begin(), scenario_.faults.end(),
                           [](const Fault& f) { return f.kind == Kind::kUnkillable || f.kind == Kind::kMad || f.kind == Kind::kHostile; });
  for (size_t m = 0; m < run_.pool.size() && !stuck && scenario_.job.preflight == job::Preflight::kOff; ++m) {
    bool faulty = std::any_of(scenario_.faults.begin(), scenario_.faults.end(), [&](const Fault& f) {
      return f.kind >= Kind::kPowerOff && (f.kind >= Kind::kOperator || f.kind == Kind::kNoStore || f.target == m);
    });
    if (run_.pool[m].out_since && !faulty) problem(fmt::format("host {} is left out, and nothing was wrong with it", m));
  }
  if (run_.number > run_.job.max_restarts + static_cast<int>(run_.pool.size())) problem("more attempts than restarts and hosts");
  if (!run_.waiting && run_.attempt.phase >= job::Phase::kRunning && run_.attempt.phase < job::Phase::kEnded && run_.attempt.plan) {
    int world = 0;
    for (const job::PlannedHost& host : run_.attempt.plan->hosts) world += host.ranks;
    if (world != run_.attempt.plan->world || run_.attempt.ranks.size() != static_cast<size_t>(world)) problem("the plan does not add up");
  }
}

void World::check_end(const job::Verdict& v) {
  trace(
      fmt::format("end: kind {}, exit code {}, rank {}, host {}, code {}", static_cast<int>(v.kind), v.exit_code, v.rank, v.host, v.code));
  for (const auto& refusal : v.refusals) trace("refused: " + refusal.message + ": " + refusal.cause);
  for (const auto& finding : run_.attempt.survey.examination.findings) trace(fmt::format("found: {}", finding.row->code));
  bool good = v.kind == VerdictKind::kDone || v.kind == VerdictKind::kPlanned || (v.kind == VerdictKind::kChecked && v.exit_code == 0);
  if (good != (v.exit_code == 0) && v.kind != VerdictKind::kChecked)
    problem(fmt::format("exit code {} of kind {}", v.exit_code, static_cast<int>(v.kind)));
  bool mad = std::any_of(scenario_.faults.begin(), scenario_.faults.end(),
                         [](const Fault& f) { return f.kind == Kind::kMad || f.kind == Kind::kHostile; });
  if (v.kind == VerdictKind::kDone && !mad) {
    for (const job::RankState& rank : run_.attempt.ranks)
      if (!rank.exited || rank.status != 0) problem("done, and a rank did not end with 0");
    for (const auto& rank : ranks_)
      if (rank->number == run_.number && rank->alive) problem("done, and a rank is alive");
  }
  if (v.kind == VerdictKind::kRankFailed && (v.rank < 0 || v.rank >= run_.attempt.plan->world)) problem("the verdict names no rank");
  if (v.kind == VerdictKind::kRefused && v.refusals.empty() && !v.unfit) problem("refused without a reason");
  if (v.kind == VerdictKind::kInterrupted && sigints_ == 0) problem("interrupted, by nobody");
  if (v.kind == VerdictKind::kHung) {
    if (v.exit_code != 5 || !v.hang || v.code != v.hang->code) problem("a stall without its verdict");
    if (run_.job.stall.action == job::OnStall::kReport) problem("stopped for a stall, though it was only to be told");
    if (v.hang && std::any_of(v.hang->ranks.begin(), v.hang->ranks.end(), [&](int r) { return r < 0 || r >= run_.attempt.plan->world; }))
      problem("a stall names a rank that there is not");
    return;
  }
  check_single_fault(v);
}

// With one fault in one attempt there is one right verdict.
void World::check_single_fault(const job::Verdict& v) {
  if (report_.attempts > 1 || scenario_.job.dry_run || scenario_.job.check_only || sigints_ > 0) return;
  const bool blocked = scenario_.faults.size() == 1 && scenario_.faults[0].kind == Kind::kBlocked;
  if (scenario_.faults.empty() || blocked || (scenario_.faults.size() == 1 && !struck_ && scenario_.faults[0].kind <= Kind::kAgentKilled)) {
    if (v.kind != VerdictKind::kDone && v.kind != VerdictKind::kRefused) problem("nothing was wrong, and the run failed");
    bool plain = scenario_.job.preflight == job::Preflight::kOff && scenario_.job.rule != job::RanksRule::kGpu &&
                 scenario_.job.hosts[0].selected.empty();
    if (v.kind == VerdictKind::kRefused && plain) problem("nothing was wrong, and the run was refused");
    return;
  }
  if (scenario_.faults.size() != 1 || !struck_) return;
  const Fault& fault = scenario_.faults[0];
  auto expect = [&](bool right) {
    if (!right)
      problem(fmt::format("{} of {}: the verdict is kind {}, rank {}, host {}", name(fault.kind), fault.target, static_cast<int>(v.kind),
                          v.rank, v.host));
  };
  bool ran = run_.attempt.started_at.ns != 0;
  switch (fault.kind) {
    case Kind::kCrash:
      return expect(v.kind == VerdictKind::kRankFailed && v.rank == static_cast<int>(fault.target) &&
                    v.status == (scenario_.dies_slowly ? 1 << 8 : fault.status));
    case Kind::kLeave:
      if (run_.attempt.plan->world > 1 && scenario_.peers_die)
        expect(v.kind == VerdictKind::kRankFailed && v.rank == static_cast<int>(fault.target) && v.code == "RUN-LEFT-EARLY");
      return;
    case Kind::kPowerOff:
    case Kind::kAgentKilled: {
      bool done = v.kind == VerdictKind::kDone;  // it struck when all was over
      bool named = v.host < run_.members.size() && run_.members[v.host] == fault.target;
      if (ran) expect(done || (v.kind == VerdictKind::kHostLost && named));
      else expect(v.kind == VerdictKind::kRefused || v.kind == VerdictKind::kHostLost || done);
      return;
    }
    case Kind::kNoStart: return expect(v.kind == VerdictKind::kRefused);
    case Kind::kAsleep: {
      // Less than the lease costs nothing; more ends the run, and no host is to blame.
      const auto& found = run_.attempt.survey.examination.findings;
      const bool silent = std::any_of(found.begin(), found.end(), [](const auto& f) { return f.row->code == "PROC-AGENT-SILENT"; });
      if (v.kind == VerdictKind::kDone) return expect(!silent);
      if (v.kind == VerdictKind::kRefused && v.exit_code == base::exit_code(base::ErrorKind::kUnfit)) return expect(!silent);
      const bool could_end = fault.lasts + milliseconds(2500) >= scenario_.job.lease;
      const bool lost = v.kind == VerdictKind::kHostLost || v.kind == VerdictKind::kRefused;
      return expect(lost && could_end && v.unfit_hosts.empty() && (!ran || v.suspended));
    }
    default: return;
  }
}

// A lease after the end nothing lives but what cannot be killed.
void World::check_nothing_left() {
  for (const auto& rank : ranks_)
    if (rank->alive && !rank->unkillable) problem(fmt::format("rank {} of attempt {} is left over", rank->rank, rank->number));
}

}  // namespace phalanx::sim
