#include "scenario.h"

#include "situations.h"

#include <signal.h>

#include <fmt/format.h>

namespace phalanx::sim {
namespace {

using Kind = Fault::Kind;

constexpr Kind kOfRanks[] = {Kind::kCrash, Kind::kLeave, Kind::kHang, Kind::kDeaf, Kind::kUnkillable};
constexpr Kind kOfHosts[] = {Kind::kPowerOff, Kind::kAgentKilled, Kind::kCut,       Kind::kOneWay,  Kind::kUnreachable,
                             Kind::kSlow,     Kind::kRefuses,     Kind::kNoStore,   Kind::kNoStart, Kind::kUnfit,
                             Kind::kMad,      Kind::kSilentProbe, Kind::kBrokenLink};
constexpr Kind kOfUs[] = {Kind::kOperator, Kind::kAsleep, Kind::kBlocked};
constexpr int kStatuses[] = {1 << 8, 3 << 8, SIGKILL, SIGSEGV, SIGABRT, 137 << 8};

job::HostRequest host(size_t number, int slots) {
  job::HostRequest request;
  request.target.name = request.target.destination = fmt::format("h{}", number + 1);
  request.slots = slots;
  return request;
}

job::Job make_job(Dice& dice) {
  job::Job job;
  size_t hosts = static_cast<size_t>(dice.between(1, 5)), spares = dice.once_in(3) ? static_cast<size_t>(dice.between(1, 3)) : 0;
  for (size_t h = 0; h < hosts + spares; ++h) (h < hosts ? job.hosts : job.spares).push_back(host(h, static_cast<int>(dice.between(1, 3))));
  job.run_id = "sim";
  job.token = "0123456789abcdef";
  job.argv = {"train"};
  job.directory = "/";
  job.grace = dice.ms(0, 3) * 1000;
  job.failure_grace = dice.ms(0, 2) * 1000;
  job.serve_store = !dice.once_in(8);
  if (dice.once_in(8)) job.master_port = 29500;
  if (job.master_port != 0 && dice.once_in(2)) job.port_run = "gpt-try2";
  if (dice.once_in(2)) job.max_restarts = static_cast<int>(dice.once_in(8) ? dice.between(5, 12) : dice.between(0, 4));
  if (hosts > 1 && dice.once_in(3)) job.least_hosts = static_cast<int>(dice.between(1, static_cast<int64_t>(hosts)));
  if (dice.once_in(10)) job.preflight = dice.once_in(2) ? job::Preflight::kStrict : job::Preflight::kWarn;
  if (dice.once_in(6)) job.burst = milliseconds(20);
  if (dice.once_in(30)) job.dry_run = true;
  if (dice.once_in(40)) job.check_only = true;
  if (job.check_only && dice.once_in(2)) job.argv.clear();
  if ((job.dry_run || job.check_only) && dice.once_in(2)) {
    job.to_copy = std::make_shared<const std::set<std::string>>(std::set<std::string>{"/train.sh", "/data/train.bin"});
    if (!job.argv.empty()) job.argv[0] = dice.once_in(2) ? "./train.sh" : "/usr/bin/train";
  }
  if (dice.once_in(60)) job.master_address = "10.0.0.1";
  if (dice.once_in(20)) job.rule = dice.once_in(3) ? job::RanksRule::kGpu : dice.once_in(2) ? job::RanksRule::kCpu : job::RanksRule::kCount;
  job.count = 2;
  if (dice.once_in(30)) job.wish.count = 1;
  if (dice.once_in(30)) job.wish.lists = {{"h1", {0}}};
  if (dice.once_in(30)) job.hosts[0].selected = {0};
  return job;
}

Fault make_fault(Dice& dice, const job::Job& job, milliseconds work) {
  Fault fault;
  size_t hosts = job.hosts.size() + job.spares.size();
  int64_t which = dice.between(1, 10);
  if (which <= 4) {
    fault.kind = kOfRanks[dice.below(std::size(kOfRanks))];
    size_t ranks = 0;
    for (const job::HostRequest& request : job.hosts) ranks += static_cast<size_t>(request.slots.value_or(1));
    fault.target = dice.below(ranks);
  } else if (which <= 8) {
    fault.kind = kOfHosts[dice.below(std::size(kOfHosts))];
    fault.target = dice.below(hosts);
  } else {
    fault.kind = kOfUs[dice.below(std::size(kOfUs))];
  }
  fault.at = dice.once_in(4) ? dice.ms(0, 50) : dice.once_in(8) ? work + dice.ms(-50, 2000) : dice.ms(0, work.count());
  fault.lasts = dice.once_in(3) ? milliseconds(3'600'000) : dice.ms(100, 20'000);
  fault.status = kStatuses[dice.below(std::size(kStatuses))];
  if (dice.once_in(2)) fault.attempt = static_cast<int>(dice.between(0, 1));
  return fault;
}

}  // namespace

const char* name(Kind kind) {
  constexpr const char* kNames[] = {"crash",   "leave",    "hang",         "deaf",        "unkillable",    "power-off",     "agent-killed",
                                    "cut",     "one-way",  "unreachable",  "slow",        "refuses",       "no-store",      "no-start",
                                    "unfit",   "mad",      "silent-probe", "broken-link", "agent-stopped", "guard-stopped", "only-pings",
                                    "hostile", "operator", "asleep",       "blocked"};
  return kNames[static_cast<size_t>(kind)];
}

const char* name(Stage stage) {
  constexpr const char* kNames[] = {"opening", "checks", "launching", "running", "stopping", "between"};
  return kNames[static_cast<size_t>(stage)];
}

const std::vector<Kind> kInAnyStage = {Kind::kPowerOff, Kind::kAgentKilled, Kind::kCut,          Kind::kOneWay,       Kind::kUnreachable,
                                       Kind::kSlow,     Kind::kMad,         Kind::kAgentStopped, Kind::kGuardStopped, Kind::kOnlyPings,
                                       Kind::kHostile,  Kind::kOperator,    Kind::kAsleep,       Kind::kBlocked};

// What an earlier run on these hosts, all of them plain machines without GPUs, would have left.
std::shared_ptr<const job::Remembered> memory_of(const job::Job& job) {
  auto remembered = std::make_shared<job::Remembered>();
  static const std::vector<doctor::HostView> machines = doctor::test::plain_ethernet().hosts;
  for (size_t h = 0; h < job.hosts.size(); ++h) {
    remembered->hosts.push_back({job.hosts[h].target.name, kFingerprint, machines[h % machines.size()].facts});
    remembered->addresses.push_back(fmt::format("10.0.0.{}", h + 1));
    remembered->interfaces.push_back("eth0");
  }
  return remembered;
}

Scenario make_scenario(uint64_t seed) {
  Dice dice(seed);
  for (int i = 0; i < 8; ++i) dice.between(0, 1);  // neighbouring seeds begin alike
  Scenario scenario;
  scenario.seed = seed;
  scenario.job = make_job(dice);
  scenario.work = dice.ms(50, 12'000);
  scenario.peers_die = dice.once_in(2);
  scenario.links_slow = dice.once_in(5);
  scenario.patience = dice.once_in(10) ? dice.ms(300'000, 500'000) : dice.ms(60'000, 120'000);
  if (dice.once_in(200)) scenario.work = dice.ms(290'000, 310'000);
  scenario.machines = static_cast<int>(dice.below(3));
  int64_t faults = dice.once_in(6) ? 0 : dice.once_in(2) ? 1 : dice.between(2, 5);
  for (int64_t i = 0; i < faults; ++i) scenario.faults.push_back(make_fault(dice, scenario.job, scenario.work));
  if (dice.once_in(3)) {  // drawn last: what seeds gave before stays
    scenario.job.stall.threshold = dice.once_in(10) ? milliseconds(0) : dice.ms(300, 6000);
    constexpr job::OnStall kActions[] = {job::OnStall::kReport, job::OnStall::kRestart, job::OnStall::kStop};
    scenario.job.stall.action = kActions[dice.below(3)];
  }
  if (dice.once_in(8)) {
    scenario.machines = 0;
    scenario.job.preflight = dice.once_in(3) ? job::Preflight::kWarn : job::Preflight::kStrict;
    scenario.job.remembered = memory_of(scenario.job);
    scenario.changed = dice.once_in(10);
  }
  scenario.job.lease = dice.once_in(2) ? job::kDefaultLease : milliseconds(1000 * dice.between(3, 20));
  scenario.dies_slowly = dice.once_in(2);
  // One at most: where agent and guard of a host both stand, nothing runs there that could end its ranks.
  if (dice.once_in(5)) {
    Fault fault;
    fault.kind = dice.once_in(3) ? Kind::kGuardStopped : Kind::kAgentStopped;
    fault.target = dice.below(scenario.job.hosts.size() + scenario.job.spares.size());
    fault.at = dice.ms(0, std::min<int64_t>(scenario.work.count(), 12'000) + 2000);
    fault.lasts = dice.once_in(2) ? milliseconds(3'600'000) : dice.ms(100, 20'000);
    if (dice.once_in(2)) fault.attempt = static_cast<int>(dice.between(0, 1));
    scenario.faults.push_back(fault);
  }
  return scenario;
}

Scenario make_stage_scenario(Kind kind, Stage stage, uint64_t seed) {
  Dice dice(seed * 1'000 + static_cast<uint64_t>(kind) * 10 + static_cast<uint64_t>(stage));
  for (int i = 0; i < 8; ++i) dice.between(0, 1);
  Scenario scenario;
  scenario.seed = seed;
  job::Job& job = scenario.job;
  const size_t hosts = static_cast<size_t>(dice.between(2, 4)), spares = static_cast<size_t>(dice.between(0, 2));
  for (size_t h = 0; h < hosts + spares; ++h) (h < hosts ? job.hosts : job.spares).push_back(host(h, static_cast<int>(dice.between(1, 2))));
  job.run_id = "sim";
  job.token = "0123456789abcdef";
  job.argv = {"train"};
  job.directory = "/";
  job.grace = dice.ms(0, 3) * 1000;
  job.failure_grace = dice.ms(0, 2) * 1000;
  job.lease = milliseconds(1000 * dice.between(3, 20));
  job.max_restarts = static_cast<int>(dice.between(1, 3));
  if (dice.once_in(2)) job.least_hosts = 1;
  if (stage == Stage::kChecks || dice.once_in(2)) job.preflight = dice.once_in(2) ? job::Preflight::kStrict : job::Preflight::kWarn;
  scenario.work = dice.ms(3000, 8000);
  scenario.peers_die = dice.once_in(2);
  scenario.links_slow = dice.once_in(5);
  scenario.patience = dice.ms(120'000, 180'000);

  Fault fault;
  fault.kind = kind;
  fault.during = stage;
  fault.target = dice.below(hosts);
  const int64_t latest = stage == Stage::kLaunching ? (scenario.links_slow ? 200 : 2) : stage == Stage::kRunning ? 2000 : 200;
  fault.at = dice.once_in(3) ? milliseconds(0) : dice.ms(0, latest);
  fault.lasts = dice.once_in(2) ? milliseconds(3'600'000) : dice.ms(100, 20'000);
  scenario.faults.push_back(fault);
  if (stage != Stage::kStopping && stage != Stage::kBetween) return scenario;

  // What ends the first attempt: a rank that fails, beside one that takes its time; or the host is cut off, so that it has an agent and
  // ranks between the attempts too.
  Fault first;
  first.attempt = 0;
  first.at = dice.ms(200, 1000);
  first.status = kStatuses[dice.below(std::size(kStatuses))];
  if (stage == Stage::kBetween && (dice.once_in(2) || kind == Kind::kAgentStopped || kind == Kind::kGuardStopped)) {
    first.kind = Kind::kCut;
    first.target = fault.target;
    first.during = Stage::kRunning;
    first.lasts = dice.once_in(2) ? milliseconds(3'600'000) : dice.ms(6000, 30'000);
  }
  scenario.faults.push_back(first);
  if (first.kind != Kind::kCrash || dice.once_in(2)) return scenario;
  Fault deaf;
  deaf.kind = Kind::kDeaf;
  deaf.attempt = 0;
  deaf.target = 1;
  scenario.faults.push_back(deaf);
  return scenario;
}

Scenario big_scenario(size_t hosts) {
  constexpr int kRanks = 8;
  Scenario scenario;
  for (size_t h = 0; h < hosts; ++h) scenario.job.hosts.push_back(host(h, kRanks));
  scenario.job.run_id = "sim";
  scenario.job.token = "0123456789abcdef";
  scenario.job.argv = {"train"};
  scenario.job.directory = "/";
  scenario.job.preflight = job::Preflight::kOff;
  scenario.work = milliseconds(3000);
  scenario.patience = milliseconds(60'000);
  Fault fault;
  fault.target = hosts * kRanks / 2;
  fault.at = milliseconds(1000);
  fault.status = 1 << 8;
  scenario.faults = {fault};
  return scenario;
}

std::string describe(const Scenario& s) {
  std::string text =
      fmt::format("seed {}: {} hosts, {} spares, least {}, {} restarts, grace {} ms, lease {} ms, works {} ms{}{}{}{}\n", s.seed,
                  s.job.hosts.size(), s.job.spares.size(), s.job.least_hosts, s.job.max_restarts, s.job.grace.count(), s.job.lease.count(),
                  s.work.count(), s.peers_die ? ", peers die" : "", s.links_slow ? ", slow links" : "",
                  s.job.preflight == job::Preflight::kOff ? "" : ", preflight", s.job.check_only ? ", check only" : "");
  for (const Fault& f : s.faults)
    text += fmt::format("  {} of {} at {} ms{}{} for {} ms, status {}, attempt {}\n", name(f.kind), f.target, f.at.count(),
                        f.during ? " of " : "", f.during ? name(*f.during) : "", f.lasts.count(), f.status, f.attempt);
  return text;
}

}  // namespace phalanx::sim
