// From the first login to the start of the ranks. Nothing runs before every host has been opened, has checked the job and
// has reached the store: what would hang is refused here.
#include "job/supervisor/step.h"

#include <signal.h>

#include <fmt/format.h>

#include "wire/challenge.h"

namespace phalanx::job {

void Step::take(size_t h, const wire::Hello& m) {
  HostState& host = s.hosts[h];
  if (host.open) return;
  if (!s.job.build.empty() && m.build != s.job.build) {
    send(h, wire::Finish{});
    return refuse(h, base::fail(base::ErrorKind::kUnreachable, s.job.hosts[h].target.name + ": the agent is from another build of phalanx")
                         .because(fmt::format("the build of the agent is {}, the launcher brings {}", m.build, s.job.build)));
  }
  host.open = true;
  host.hello = m;
  host.clock_offset_ns = m.now_ns - now.ns;  // late by one way of the connection; the first pong mends it
  ping(h);
  if (s.phase != Phase::kOpening) return send(h, wire::Finish{});  // it came after the end was decided
  if (all_hosts(s, [&](const HostState& x) { return x.open || (s.job.check_only && x.ended); })) all_open();
}

void Step::all_open() {
  if (checks() && starts_by_memory()) return begin_by_memory();
  if (checks()) return begin_checks();
  if (make_the_plan()) prepare_hosts();
}

bool Step::make_the_plan() {
  std::vector<wire::Hello> hellos;
  for (const HostState& host : s.hosts) hellos.push_back(host.hello);
  base::Result<Plan> plan = make_plan(s.job, hellos, s.checks.choices);
  if (!plan.ok() && s.job.check_only) return false;
  if (!plan.ok()) {
    Verdict verdict;
    verdict.kind = Verdict::Kind::kRefused;
    verdict.exit_code = base::exit_code(plan.error().kind);
    verdict.refusals = {plan.error()};
    finish(std::move(verdict));
    return false;
  }
  s.plan = std::move(plan).value();
  s.ranks.resize(static_cast<size_t>(s.plan->world));
  s.addresses = meeting_addresses(s.job, hellos, s.checks.choices);
  return true;
}

void Step::prepare_hosts() {
  s.phase = Phase::kPreparing;
  wire::Prepare prepare;
  prepare.run_id = s.job.run_id;
  prepare.key = wire::key_for(wire::Purpose::kStore, s.job.token);
  prepare.lease_ms = static_cast<uint32_t>(s.job.lease.count());
  prepare.job = s.job;
  prepare.boot_id = s.job.boot_id;
  for (size_t h = 0; h < s.hosts.size(); ++h) send(h, prepare);
  open_store();
}

void Step::open_store() {
  s.meeting.reset();
  send(0, wire::OpenStore{s.addresses[s.address], static_cast<uint32_t>(s.job.master_port), s.job.serve_store});
}

void Step::take(size_t h, const wire::Prepared& m) {
  if (s.phase != Phase::kPreparing || s.hosts[h].prepared) return;
  if (!m.outcome.ok) return refuse(h, base::Error(m.outcome.error));
  s.hosts[h].prepared = true;
  ping(h);  // another sample for its clock, while nothing else is on the wire
  s.hosts[h].program = m.program;
  maybe_prepared();
}

void Step::take(size_t h, const wire::StoreOpened& m) {
  if (h != 0 || s.phase != Phase::kPreparing || s.meeting) return;
  if (!m.outcome.ok) return try_next_address(h, m.outcome.error);
  s.meeting = Meeting{s.addresses[s.address], static_cast<int>(m.port), s.job.serve_store};
  maybe_prepared();
}

void Step::maybe_prepared() {
  if (s.phase != Phase::kPreparing || !s.meeting || !all_hosts(s, [](const HostState& x) { return x.prepared; })) return;
  if (s.settle_at) return settle_refusals();  // a host that had prepared is lost: it would never be heard of again
  s.hosts[0].reached = true;
  s.hosts[0].interface = s.hosts.size() == 1 ? "lo" : "";
  for (const wire::Address& a : s.hosts[0].hello.addresses)
    if (a.address == s.meeting->address) s.hosts[0].interface = a.interface;
  if (s.job.dry_run) {
    Verdict verdict;
    verdict.kind = Verdict::Kind::kPlanned;
    return finish(std::move(verdict));
  }
  if (s.checks.by_memory)  // the path to the store was tried minutes ago, and will be again
    for (size_t h = 1; h < s.hosts.size(); ++h) s.hosts[h].interface = s.job.remembered->interfaces[h];
  if (s.hosts.size() == 1 || !s.job.serve_store || s.checks.by_memory) return start_ranks();
  s.phase = Phase::kReaching;
  for (size_t h = 1; h < s.hosts.size(); ++h) {
    s.hosts[h].reached = false;
    send(h, wire::Reach{s.meeting->address, static_cast<uint32_t>(s.meeting->port), static_cast<uint32_t>(kReachTimeout.count())});
  }
}

void Step::take(size_t h, const wire::Reached& m) {
  if (s.phase != Phase::kReaching) return;  // of an address already given up
  if (!m.outcome.ok) return try_next_address(h, m.outcome.error);
  s.hosts[h].reached = true;
  s.hosts[h].interface = m.interface;
  if (all_hosts(s, [](const HostState& x) { return x.reached; })) start_ranks();
}

void Step::try_next_address(size_t h, const base::Error& error) {
  if (s.phase != Phase::kPreparing && s.phase != Phase::kReaching) return;
  if (!s.first_reach_error) {
    s.first_reach_error = error;
    s.first_reach_error->message = s.job.hosts[h].target.name + ": " + error.message;
    if (h != 0)
      s.first_reach_error->context.push_back("checking that the host can reach the store on " + s.job.hosts[0].target.name +
                                             ", where rank 0 runs");
    s.first_reach_error->hint =
        "phalanx run --master-addr ADDRESS …   (an address of " + s.job.hosts[0].target.name + " that every host can reach)";
  }
  if (++s.address < s.addresses.size()) {
    s.phase = Phase::kPreparing;
    return open_store();
  }
  Verdict verdict;
  verdict.kind = Verdict::Kind::kRefused;
  verdict.exit_code = base::exit_code(s.first_reach_error->kind);
  verdict.refusals = {*s.first_reach_error};
  finish(std::move(verdict));
}

void Step::refuse(size_t h, base::Error error) {
  const std::string& name = s.job.hosts[h].target.name;
  if (error.message.rfind(name, 0) != 0 && !s.hosts[h].forsaken) error.message = name + ": " + error.message;
  s.hosts[h].refusal = std::move(error);
  if (!s.settle_at) s.settle_at = now + kSettle;
  settle_refusals();
}

// All refusals are told together: when every host has been heard, or a little after the first one.
void Step::settle_refusals() {
  if (!s.settle_at || s.phase >= Phase::kRunning) return;
  bool all = all_hosts(s, [&](const HostState& x) { return x.refusal || (s.phase <= Phase::kChecking ? x.open : x.prepared); });
  if (!all && now < *s.settle_at) return;
  Verdict verdict;
  verdict.kind = Verdict::Kind::kRefused;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    if (!s.hosts[h].refusal) continue;
    verdict.refusals.push_back(*s.hosts[h].refusal);
    if (!s.hosts[h].forsaken) verdict.unfit_hosts.push_back(h);
  }
  verdict.exit_code = base::exit_code(verdict.refusals.front().kind);
  finish(std::move(verdict));
}

void Step::start_ranks() {
  s.phase = Phase::kRunning;
  s.started_at = now;
  s.stall.movement.begin(now);
  s.stall.ticked = now;
  s.slow.gpus_at = now + kFirstGpuLook;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const PlannedHost& planned = s.plan->hosts[h];
    wire::Start start;
    start.store_address = s.meeting->address;
    start.store_port = static_cast<uint32_t>(s.meeting->port);
    if (!interface_chosen(s.checks.choices, h)) start.defaults = host_defaults(*s.plan, s.hosts[h].interface);
    for (int local = 0; local < planned.ranks; ++local) {
      int rank = planned.first_rank + local;
      start.ranks.push_back({static_cast<uint32_t>(rank), static_cast<uint32_t>(local), rank_variables(s.job, *s.plan, rank, *s.meeting),
                             bound_cpus(s.checks.choices, h, local)});
    }
    send(h, std::move(start));
  }
  if (!s.checks.by_memory && measures_later()) begin_speed();
  tell(RunStarted{s.plan->world, s.hosts.size(), s.meeting->address, s.meeting->port});
}

void Step::take(size_t h, const wire::Started& m) {
  if (!is_rank_of(h, m.rank) || s.ranks[m.rank].started) return;
  RankState& rank = s.ranks[m.rank];
  rank.started = m.outcome.ok;
  rank.pid = m.pid;
  if (m.outcome.ok) return;
  rank.lost = true;
  rank.at = now;
  Verdict verdict;
  verdict.kind = Verdict::Kind::kRefused;
  base::Error error = m.outcome.error;
  error.message = fmt::format("{}: rank {} could not be started: {}", s.job.hosts[h].target.name, m.rank, error.message);
  verdict.exit_code = base::exit_code(base::ErrorKind::kUnfit);
  verdict.refusals = {std::move(error)};
  verdict.unfit_hosts = {h};
  if (!s.verdict) s.verdict = std::move(verdict);
  stop(SIGTERM, false);
  maybe_all_over();  // it may be the last one that the others' stop waits for
}

}  // namespace phalanx::job
