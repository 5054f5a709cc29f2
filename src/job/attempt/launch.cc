// From the plan to the start of the ranks. Nothing runs before every host has been opened, has checked the job and
// has reached the store: what would hang is refused here.
#include "job/attempt/step.h"

#include <signal.h>

#include <fmt/format.h>

#include "wire/challenge.h"

namespace phalanx::job {
namespace {

// The port of --master-port, on the host of rank 0. holder: the process that listens there, as the host says; 0: not seen.
std::string hint_for_taken_port(const Job& job, uint32_t holder) {
  if (!job.port_run.empty()) return "phalanx stop " + job.port_run;
  const hosts::Target& host = job.hosts[0].target;
  std::string look = host.destination.empty() ? "" : "ssh " + host.name + " ";
  look += holder > 0 ? fmt::format("ps -o pid,user,etime,args -p {}", holder) : fmt::format("ss -ltnp sport = :{}", job.master_port);
  return fmt::format("{}, then choose another --master-port, or omit it for any free port", look);
}

// "./train.sh", which --sync will bring.
bool program_is_copied(const Job& job) {
  return job.to_copy && !job.argv.empty() && job.argv[0].find('/') != std::string::npos && !job.argv[0].starts_with('/');
}

}  // namespace

bool AttemptStep::make_the_plan() {
  std::vector<wire::Hello> hellos;
  for (const HostState& host : hosts) hellos.push_back(host.hello);
  base::Result<Plan> plan = make_plan(job, hellos, choices);
  if (!plan.ok() && job.check_only) return false;
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
  s.addresses = meeting_addresses(job, hellos, choices);
  return true;
}

void AttemptStep::prepare_hosts() {
  s.phase = Phase::kPreparing;
  wire::Prepare prepare;
  prepare.run_id = job.run_id;
  prepare.key = wire::key_for(wire::Purpose::kStore, job.token);
  prepare.lease_ms = static_cast<uint32_t>(job.lease.count());
  prepare.job = job;
  if (job.to_copy) prepare.job.directory = "/";  // a plan: the directory comes with the code
  if (program_is_copied(job)) prepare.job.argv[0] = "sh";
  prepare.boot_id = job.boot_id;
  for (size_t h = 0; h < hosts.size(); ++h) send(h, prepare);
  open_store();
}

void AttemptStep::open_store() {
  s.meeting.reset();
  send(0, wire::OpenStore{s.addresses[s.address], static_cast<uint32_t>(job.master_port), job.serve_store});
}

void AttemptStep::take(size_t h, const wire::Prepared& m) {
  if (s.phase != Phase::kPreparing || hosts[h].prepared) return;
  if (!m.outcome.ok) return refuse(h, base::Error(m.outcome.error));
  hosts[h].prepared = true;
  ping(h);  // another sample for its clock, while nothing else is on the wire
  hosts[h].program = program_is_copied(job) ? job.argv[0] : m.program;
  maybe_prepared();
}

void AttemptStep::take(size_t h, const wire::StoreOpened& m) {
  if (h != 0 || s.phase != Phase::kPreparing || s.meeting) return;
  s.port_holder = m.holder;
  if (!m.outcome.ok) return try_next_address(h, m.outcome.error);
  s.meeting = Meeting{s.addresses[s.address], static_cast<int>(m.port), job.serve_store};
  maybe_prepared();
}

void AttemptStep::maybe_prepared() {
  if (s.phase != Phase::kPreparing || !s.meeting || !all_hosts(hosts, [](const HostState& x) { return x.prepared; })) return;
  if (s.settle_at) return settle_refusals();  // a host that had prepared is lost: it would never be heard of again
  hosts[0].reached = true;
  hosts[0].interface = hosts.size() == 1 ? "lo" : "";
  for (const wire::Address& a : hosts[0].hello.addresses)
    if (a.address == s.meeting->address) hosts[0].interface = a.interface;
  if (job.dry_run) {
    Verdict verdict;
    verdict.kind = Verdict::Kind::kPlanned;
    return finish(std::move(verdict));
  }
  if (s.by_memory)  // the path to the store was tried minutes ago, and will be again
    for (size_t h = 1; h < hosts.size(); ++h) hosts[h].interface = job.remembered->interfaces[h];
  if (hosts.size() == 1 || !job.serve_store || s.by_memory) return start_ranks();
  s.phase = Phase::kReaching;
  for (size_t h = 1; h < hosts.size(); ++h) {
    hosts[h].reached = false;
    send(h, wire::Reach{s.meeting->address, static_cast<uint32_t>(s.meeting->port), static_cast<uint32_t>(kReachTimeout.count())});
  }
}

void AttemptStep::take(size_t h, const wire::Reached& m) {
  if (s.phase != Phase::kReaching) return;  // of an address already given up
  if (!m.outcome.ok) return try_next_address(h, m.outcome.error);
  hosts[h].reached = true;
  hosts[h].interface = m.interface;
  if (all_hosts(hosts, [](const HostState& x) { return x.reached; })) start_ranks();
}

void AttemptStep::try_next_address(size_t h, const base::Error& error) {
  if (s.phase != Phase::kPreparing && s.phase != Phase::kReaching) return;
  if (!s.first_reach_error) {
    s.first_reach_error = error;
    s.first_reach_error->message = job.hosts[h].target.name + ": " + error.message;
    if (h != 0)
      s.first_reach_error->context.push_back(
          fmt::format("checking that the host can reach the store on {}, where rank 0 runs", job.hosts[0].target.name));
    s.first_reach_error->hint =
        fmt::format("phalanx run --master-addr ADDRESS …   (an address of {} that every host can reach)", job.hosts[0].target.name);
    if (h == 0 && job.master_port != 0)  // its own port, which another process may hold
      s.first_reach_error->hint = hint_for_taken_port(job, s.port_holder);
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

void AttemptStep::refuse(size_t h, base::Error error) {
  const std::string& name = job.hosts[h].target.name;
  if (error.message.rfind(name, 0) != 0 && !hosts[h].forsaken) error.message = name + ": " + error.message;
  hosts[h].refusal = std::move(error);
  if (!s.settle_at) s.settle_at = now + kSettle;
  settle_refusals();
}

// All refusals are told together: when every host has been heard, or a little after the first one.
void AttemptStep::settle_refusals() {
  if (!s.settle_at || s.phase >= Phase::kRunning) return;
  bool all = all_hosts(hosts, [&](const HostState& x) { return x.refusal || (s.phase <= Phase::kChecking ? x.open : x.prepared); });
  if (!all && now < *s.settle_at) return;
  Verdict verdict;
  verdict.kind = Verdict::Kind::kRefused;
  for (size_t h = 0; h < hosts.size(); ++h) {
    if (!hosts[h].refusal) continue;
    verdict.refusals.push_back(*hosts[h].refusal);
    if (!hosts[h].forsaken) verdict.unfit_hosts.push_back(h);
  }
  verdict.exit_code = base::exit_code(verdict.refusals.front().kind);
  finish(std::move(verdict));
}

void AttemptStep::start_ranks() {
  s.phase = Phase::kRunning;
  s.started_at = now;
  s.stall.movement.begin(now);
  s.stall.ticked = now;
  s.slow.gpus_at = now + kFirstGpuLook;
  s.slow.shares_at = now + kSharesWithoutSteps;
  for (size_t h = 0; h < hosts.size(); ++h) {
    const PlannedHost& planned = s.plan->hosts[h];
    wire::Start start;
    start.store_address = s.meeting->address;
    start.store_port = static_cast<uint32_t>(s.meeting->port);
    if (!interface_chosen(choices, h)) start.defaults = host_defaults(*s.plan, hosts[h].interface);
    for (int local = 0; local < planned.ranks; ++local) {
      int rank = planned.first_rank + local;
      start.ranks.push_back({static_cast<uint32_t>(rank), static_cast<uint32_t>(local), rank_variables(job, *s.plan, rank, *s.meeting),
                             bound_cpus(choices, h, local)});
    }
    send(h, std::move(start));
  }
  tell(RunStarted{s.plan->world, hosts.size(), s.meeting->address, s.meeting->port});
}

void AttemptStep::take(size_t h, const wire::Started& m) {
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
  error.message = fmt::format("{}: rank {} could not be started: {}", job.hosts[h].target.name, m.rank, error.message);
  verdict.exit_code = base::exit_code(base::ErrorKind::kUnfit);
  verdict.refusals = {std::move(error)};
  verdict.unfit_hosts = {h};
  if (!s.verdict) s.verdict = std::move(verdict);
  stop(SIGTERM, false);
  maybe_all_over();  // it may be the last one that the others' stop waits for
}

}  // namespace phalanx::job
