// From the last login to the choices: every host is probed over the connection that is already there, then the doctor looks at all of
// it. A host that hangs costs the deadline and no more.
#include <fmt/format.h>
#include <algorithm>

#include "base/json_fields.h"
#include "job/facts_bounds.h"
#include "job/survey/parts.h"
#include "job/supervisor/step.h"

namespace phalanx::job {
namespace {

constexpr int kUnfitCode = 3;

bool wants_gpus(const State& s) {
  if (s.job.rule == RanksRule::kGpu || s.job.wish.count || !s.job.wish.lists.empty()) return true;
  if (s.job.rule == RanksRule::kCpu) return false;
  return std::any_of(s.checks.situation.hosts.begin(), s.checks.situation.hosts.end(),
                     [](const doctor::HostView& h) { return !h.facts.gpus.devices.empty(); });
}

// Whose names and routes a host looks at: those it will connect to, and rank 0's. So that what is sent to a host, and what it does,
// does not grow with the number of hosts.
std::vector<std::vector<size_t>> peers_of_all(const State& s) {
  std::vector<std::vector<size_t>> peers(s.hosts.size());
  for (size_t h = 1; h < peers.size(); ++h) peers[h].push_back(0);
  for (const std::vector<hosts::Pair>& round : s.checks.rounds)
    for (const auto& [from, to] : round) {
      peers[static_cast<size_t>(from)].push_back(static_cast<size_t>(to));
      peers[static_cast<size_t>(to)].push_back(static_cast<size_t>(from));
    }
  for (std::vector<size_t>& list : peers) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return peers;
}

uint32_t seed_of(const std::string& token) {
  uint32_t seed = 1;
  for (char c : token) seed = seed * 31 + static_cast<unsigned char>(c);
  return seed;
}

// The hosts that the errors speak of; none if one is an error of the job itself or of every host.
std::vector<size_t> blamed(const doctor::Examination& examination, size_t hosts) {
  std::vector<size_t> list;
  for (const doctor::Finding& finding : examination.findings) {
    if (finding.row->severity != doctor::Severity::kError) continue;
    if (finding.hosts.empty()) return {};
    list.insert(list.end(), finding.hosts.begin(), finding.hosts.end());
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list.size() == hosts ? std::vector<size_t>{} : list;
}

}  // namespace

GpuRequest wish_of(const State& s) {
  GpuRequest wish = s.job.wish;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostRequest& request = s.job.hosts[h];
    int ranks = s.job.rule == RanksRule::kCount ? s.job.count : !s.job.rule ? request.slots.value_or(0) : 0;
    wish.ranks.push_back(ranks);
    bool listed = std::any_of(wish.lists.begin(), wish.lists.end(), [&](const auto& list) { return list.first == request.target.name; });
    if (!request.selected.empty() && s.hosts[h].hello.gpus > 0 && !listed) wish.lists.emplace_back(request.target.name, request.selected);
  }
  return wish;
}

doctor::JobView job_view(const Job& job) {
  doctor::JobView view;
  static_cast<wire::JobSpec&>(view) = job;
  view.serves_store = job.serve_store;
  view.master_address = job.master_address;
  view.master_port = job.master_port;
  view.hosts_asked_gpus = job.wish.count.value_or(0);
  return view;
}

void Step::begin_checks() {
  if (s.phase == Phase::kOpening) s.phase = Phase::kChecking;
  Checks& c = s.checks;
  c.stage = Checks::Stage::kProbing;
  c.situation.job = job_view(s.job);
  c.situation.hosts.resize(s.hosts.size());
  c.rounds = hosts::mesh_rounds(static_cast<int>(s.hosts.size()), seed_of(s.job.token));
  c.peers = peers_of_all(s);
  c.firewall_asked = s.job.check_only;
  std::vector<bool> asked(s.hosts.size());
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    doctor::HostView& view = c.situation.hosts[h];
    view.name = s.job.hosts[h].target.name;
    if (s.hosts[h].refusal) view.error = s.hosts[h].refusal->message;
    asked[h] = view.reached = alive(h);
    if (asked[h]) probe(h);
  }
  await(asked, s.job.probe_deadline + kProbeGrace);
  check_progress();
}

void Step::probe(size_t h) {
  wire::Probe probe;
  for (size_t peer : s.checks.peers[h]) {
    probe.peers.push_back({s.job.hosts[peer].target.name, {}});
    for (const wire::Address& a : s.hosts[peer].hello.addresses) probe.peers.back().addresses.push_back(a.address);
  }
  probe.job = s.job;
  if (s.job.master_port != 0) probe.ports.push_back(static_cast<uint32_t>(s.job.master_port));
  if (!s.job.master_address.empty()) probe.names.push_back(s.job.master_address);
  probe.paths = s.job.paths;
  probe.deadline_ms = static_cast<uint32_t>(s.job.probe_deadline.count());
  probe.firewall = s.checks.firewall_asked;
  send(h, std::move(probe));
}

// Ranks of the attempt before are dead, and the driver still counts memory as theirs: a new rank would find too little.
bool Step::memory_held(size_t h) const {
  const std::vector<int64_t>& former = s.job.hosts[h].former_pids;
  for (const machine::Gpu& gpu : s.checks.situation.hosts[h].facts.gpus.devices)
    for (const machine::GpuProcess& process : gpu.processes)
      if (!process.visible && std::find(former.begin(), former.end(), process.pid) != former.end()) return true;
  return false;
}

void Step::await(const std::vector<bool>& hosts, os::milliseconds patience) {
  s.checks.deadline = now + patience;
  s.checks.answered.resize(hosts.size());
  for (size_t h = 0; h < hosts.size(); ++h) s.checks.answered[h] = !hosts[h];
}

// Reading what a thousand hosts have answered takes seconds. While answers keep coming, those of the others may lie unread here, and
// nobody is called silent for that.
void Step::answered(size_t h) {
  s.checks.answered[h] = true;
  s.checks.deadline = std::max(*s.checks.deadline, now + kAnswersPause);
}

// A host that cannot be opened, or ends during the checks. A run is refused for it; `check` reports on the others.
void Step::host_missed(size_t h, const base::Error& error) {
  s.hosts[h].refusal = error;
  if (s.phase == Phase::kOpening) {
    if (all_hosts(s, [](const HostState& x) { return x.open || x.ended; })) begin_checks();
    return;
  }
  doctor::HostView& view = s.checks.situation.hosts[h];
  view.probed = view.reached = false;
  view.error = error.message;
  s.checks.answered[h] = true;
  check_progress();
}

void Step::take(size_t h, const wire::Probed& m) {
  Checks& c = s.checks;
  if (!checking() || c.stage != Checks::Stage::kProbing || c.answered[h]) return;
  answered(h);
  doctor::HostView& view = c.situation.hosts[h];
  if (c.mesh_over && !m.outcome.ok) return check_progress();  // it was asked for more, and the facts are there
  view.error = m.outcome.ok ? "" : m.outcome.error.message;
  if (m.outcome.ok) {
    base::Result<machine::Facts> facts = facts_from_host(m.json);
    if (facts.ok()) view.facts = std::move(facts).value();
    else view.error = "the facts from this host cannot be read: " + facts.error().message;
  }
  view.probed = view.error.empty();
  if (view.probed && memory_held(h) && now - s.begun_at < kGpuMemoryPatience) {
    if (!std::exchange(c.memory_told, true)) tell(WaitingForGpuMemory{h});
    c.answered[h] = false;
    c.deadline = now + s.job.probe_deadline + kProbeGrace;
    return probe(h);
  }
  ping(h);  // another sample for its clock, while nothing else is on the wire
  check_progress();
}

// Called when a host has answered and at every tick: goes on when all have, or when the stage's time is over.
void Step::check_progress() {
  Checks& c = s.checks;
  if (!checking() && !(c.stage == Checks::Stage::kMeasuring && c.round > 0 && s.phase == Phase::kRunning)) return;
  bool all = std::all_of(c.answered.begin(), c.answered.end(), [](bool answered) { return answered; });
  if (!all && now < *c.deadline) return;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    if (c.answered[h] || c.stage == Checks::Stage::kMeasuring) continue;
    if (c.mesh_over) continue;  // the firewall's rules are missing, the facts are there
    s.hosts[h].silent = true;
    if (c.stage != Checks::Stage::kProbing) continue;
    c.situation.hosts[h].error = fmt::format("the host did not answer the probe within {:.1f} s",
                                             static_cast<double>((s.job.probe_deadline + kProbeGrace).count()) / 1000);
  }
  switch (c.stage) {
    case Checks::Stage::kProbing: return c.mesh_over ? end_checks() : begin_mesh();
    case Checks::Stage::kListening: return dial_round();
    case Checks::Stage::kDialing:
    case Checks::Stage::kMeasuring: return end_round();
    default: return;
  }
}

// The host's wall clock less ours: through both monotonic clocks, whose offset the pings have measured.
void Step::note_clocks() {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostState& host = s.hosts[h];
    doctor::HostView& view = s.checks.situation.hosts[h];
    const machine::ClockFacts& clock = view.facts.clock;
    if (!host.best_round_trip_ns) continue;
    int64_t wall_less_mono = clock.mono_ns != 0 ? clock.wall_ns - clock.mono_ns : host.hello.wall_ns - host.hello.now_ns;
    if (clock.mono_ns == 0 && host.hello.wall_ns == 0) continue;
    view.clock_offset_ns = wall_less_mono + host.clock_offset_ns - s.wall_less_mono_ns;
    view.clock_error_ns = *host.best_round_trip_ns / 2;
  }
}

void Step::end_checks() {
  Checks& c = s.checks;
  c.stage = Checks::Stage::kDone;
  note_clocks();
  c.situation.job.wants_gpus = wants_gpus(s);
  bool runs = s.phase == Phase::kRunning;  // the choices and the plan stand (job/supervisor/memory.cc)
  if (!runs)
    c.choices = choose(c.situation, wish_of(s), c.best ? c.networks[*c.best] : c.networks.empty() ? Network{} : c.networks.front());
  settle_plan();
  if (!runs && s.phase != Phase::kChecking) return;  // there can be no plan: that is said already
  c.examination = doctor::examine(c.situation, s.job.only);
  c.examined = true;
  c.examined_at = now;
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
    return finish(std::move(verdict));
  }
  if (!verdict.refusals.empty()) {
    verdict.kind = Verdict::Kind::kRefused;
    return runs ? refuse_running(std::move(verdict)) : finish(std::move(verdict));
  }
  if (c.examination.errors > 0 && s.job.preflight == Preflight::kStrict && !s.job.dry_run) {
    verdict.kind = Verdict::Kind::kRefused;
    verdict.unfit = true;
    verdict.unfit_hosts = blamed(c.examination, s.hosts.size());
    verdict.exit_code = kUnfitCode;
    return runs ? refuse_running(std::move(verdict)) : finish(std::move(verdict));
  }
  if (c.examination.errors + c.examination.warnings > 0) tell(Concerns{});
  if (!runs) return prepare_hosts();
  if (measures_later()) begin_speed();
}

// The plan by what was chosen; without one `check` still reports, a run is refused.
void Step::settle_plan() {
  Checks& c = s.checks;
  bool possible = !(s.job.check_only && s.job.argv.empty()) && all_hosts(s, [](const HostState& x) { return x.open; });
  bool planned = s.phase == Phase::kRunning || (possible && make_the_plan());
  for (size_t h = 0; h < c.situation.hosts.size(); ++h) {
    doctor::HostView& view = c.situation.hosts[h];
    view.address = c.choices->hosts[h].address;
    view.interface = c.choices->hosts[h].interface;
    if (planned) view.ranks = s.plan->hosts[h].ranks;
  }
  if (planned) c.situation.job.world = s.plan->world;
}

}  // namespace phalanx::job
