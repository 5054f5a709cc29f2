// From the last login to the choices: every host is probed over the connection that is already there, then the doctor looks at all of
// it. A host that hangs costs the deadline and no more.
#include <fmt/format.h>
#include <algorithm>

#include "base/json_fields.h"
#include "job/facts_bounds.h"
#include "job/survey/step.h"

namespace phalanx::job {
namespace {

// Of what will be copied before a start, the same to all, nothing that a host has now counts, nor that it has it not.
void leave_to_copy(const std::set<std::string>& copied, machine::Facts& facts) {
  std::erase_if(facts.storage.paths, [&](const machine::PathFact& fact) { return copied.count(fact.path) > 0; });
  std::erase_if(facts.command.files, [&](const machine::CommandFile& file) { return copied.count(file.path) > 0; });
  facts.command.git_head.clear();
}

uint32_t seed_of(const std::string& token) {
  uint32_t seed = 1;
  for (char c : token) seed = seed * 31 + static_cast<unsigned char>(c);
  return seed;
}

}  // namespace

// Whose names and routes a host looks at: those it will connect to, and rank 0's. So that what is sent to a host, and what it does,
// does not grow with the number of hosts.
std::vector<std::vector<size_t>> SurveyStep::peers_of_all() const {
  std::vector<std::vector<size_t>> peers(hosts.size());
  for (size_t h = 1; h < peers.size(); ++h) peers[h].push_back(0);
  for (const std::vector<hosts::Pair>& round : c.rounds)
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

// What was asked of the GPUs, in all its forms: --gpus, slots of the host list, slots chosen by a filter, --nproc-per-node.
GpuRequest SurveyStep::wish() const {
  GpuRequest all = job.wish;
  for (size_t h = 0; h < hosts.size(); ++h) {
    const HostRequest& request = job.hosts[h];
    all.ranks.push_back(ranks_asked(job, request));
    bool listed = std::any_of(all.lists.begin(), all.lists.end(), [&](const auto& list) { return list.first == request.target.name; });
    if (!request.selected.empty() && hosts[h].hello.gpus > 0 && !listed) all.lists.emplace_back(request.target.name, request.selected);
  }
  return all;
}

void SurveyStep::set_job() {
  doctor::JobView view;
  static_cast<wire::JobSpec&>(view) = job;
  view.serves_store = job.serve_store;
  view.master_address = job.master_address;
  view.master_port = job.master_port;
  view.port_run = job.port_run;
  view.unset = job.project.unset;
  view.hosts_asked_gpus = job.wish.count.value_or(0);
  c.situation.job = std::move(view);
}

void SurveyStep::begin() {
  c.stage = Survey::Stage::kProbing;
  set_job();
  c.situation.hosts.resize(hosts.size());
  c.rounds = hosts::mesh_rounds(static_cast<int>(hosts.size()), seed_of(job.token));
  c.peers = peers_of_all();
  c.firewall_asked = job.check_only;
  std::vector<bool> asked(hosts.size());
  for (size_t h = 0; h < hosts.size(); ++h) {
    doctor::HostView& view = c.situation.hosts[h];
    view.name = job.hosts[h].target.name;
    if (hosts[h].refusal) view.error = hosts[h].refusal->message;
    asked[h] = view.reached = alive(h);
    if (asked[h]) probe(h);
  }
  await(asked, job.probe_deadline + kProbeGrace);
  progress();
}

void SurveyStep::probe(size_t h) {
  wire::Probe probe;
  for (size_t peer : c.peers[h]) {
    probe.peers.push_back({job.hosts[peer].target.name, {}});
    for (const wire::Address& a : hosts[peer].hello.addresses) probe.peers.back().addresses.push_back(a.address);
  }
  probe.job = job;
  if (job.master_port != 0) probe.ports.push_back(static_cast<uint32_t>(job.master_port));
  if (!job.master_address.empty()) probe.names.push_back(job.master_address);
  probe.paths = job.paths;
  probe.deadline_ms = static_cast<uint32_t>(job.probe_deadline.count());
  probe.firewall = c.firewall_asked;
  send(h, std::move(probe));
}

// Ranks of the attempt before are dead, and the driver still counts memory as theirs: a new rank would find too little.
bool SurveyStep::memory_held(size_t h) const {
  const std::vector<int64_t>& former = job.hosts[h].former_pids;
  for (const machine::Gpu& gpu : c.situation.hosts[h].facts.gpus.devices)
    for (const machine::GpuProcess& process : gpu.processes)
      if (!process.visible && std::find(former.begin(), former.end(), process.pid) != former.end()) return true;
  return false;
}

void SurveyStep::await(const std::vector<bool>& asked, os::milliseconds patience) {
  c.deadline = now + patience;
  c.asked_at = c.last_answer = now;
  c.answered.resize(asked.size());
  for (size_t h = 0; h < asked.size(); ++h) c.answered[h] = !asked[h];
}

// Reading what a thousand hosts have answered takes seconds. While answers keep coming, those of the others may lie unread here, and
// nobody is called silent for that.
void SurveyStep::answered(size_t h) {
  c.answered[h] = true;
  c.last_answer = now;
  c.deadline = std::max(*c.deadline, now + kAnswersPause);
}

// Whose agent runs, and has not come to what it was asked: the machine is busy, or its file systems are slow.
std::vector<size_t> SurveyStep::busy_hosts() const {
  std::vector<size_t> busy;
  for (size_t h = 0; h < hosts.size(); ++h)
    if (!c.answered[h] && alive(h) && now - hosts[h].answered < kTalks) busy.push_back(h);
  return busy;
}

void SurveyStep::missed(size_t h, const base::Error& error) {
  doctor::HostView& view = c.situation.hosts[h];
  view.probed = view.reached = false;
  view.error = error.message;
  c.answered[h] = true;
  progress();
}

void SurveyStep::take(size_t h, const wire::Probed& m) {
  if (!asking() || c.stage != Survey::Stage::kProbing || c.answered[h]) return;
  answered(h);
  doctor::HostView& view = c.situation.hosts[h];
  if (c.mesh_over && !m.outcome.ok) return progress();  // it was asked for more, and the facts are there
  view.error = m.outcome.ok ? "" : m.outcome.error.message;
  if (m.outcome.ok) {
    base::Result<machine::Facts> facts = facts_from_host(m.json);
    if (facts.ok()) view.facts = std::move(facts).value();
    else view.error = fmt::format("the facts from this host cannot be read: {}", facts.error().message);
  }
  view.probed = view.error.empty();
  if (view.probed && job.to_copy) leave_to_copy(*job.to_copy, view.facts);
  if (view.probed && memory_held(h) && now - c.begun_at < kGpuMemoryPatience) {
    if (!std::exchange(c.memory_told, true)) tell(WaitingForGpuMemory{h});
    c.answered[h] = false;
    c.deadline = now + job.probe_deadline + kProbeGrace;
    return probe(h);
  }
  ping(h);  // another sample for its clock, while nothing else is on the wire
  progress();
}

// Called when a host has answered and at every tick: goes on when all have, or when the stage's time is over.
void SurveyStep::progress() {
  if (!asking() && !measuring()) return;
  bool all = std::all_of(c.answered.begin(), c.answered.end(), [](bool answered) { return answered; });
  if (!all && now < *c.deadline) return;
  if (!all && asking() && now - c.last_answer < kBusyPatience) {
    std::vector<size_t> busy = busy_hosts();
    if (!busy.empty() && !std::exchange(c.busy_told, true)) tell(WaitingForHosts{busy, true});
    if (!busy.empty()) return;
  }
  for (size_t h = 0; h < hosts.size(); ++h) {
    if (c.answered[h] || c.stage == Survey::Stage::kMeasuring) continue;
    if (c.mesh_over) continue;  // the firewall's rules are missing, the facts are there
    hosts[h].silent = true;
    if (c.stage != Survey::Stage::kProbing) continue;
    c.situation.hosts[h].error =
        fmt::format("the host did not answer the probe within {:.1f} s", static_cast<double>((now - c.asked_at).count()) / 1e9);
  }
  switch (c.stage) {
    case Survey::Stage::kProbing:
      if (!c.mesh_over) return begin_mesh();
      c.stage = Survey::Stage::kSurveyed;
      return;
    case Survey::Stage::kListening: return dial_round();
    case Survey::Stage::kDialing:
    case Survey::Stage::kMeasuring: return end_round();
    default: return;
  }
}

// The host's wall clock less ours: through both monotonic clocks, whose offset the pings have measured.
void SurveyStep::note_clocks(int64_t wall_less_mono_ns) {
  for (size_t h = 0; h < hosts.size(); ++h) {
    const HostState& host = hosts[h];
    doctor::HostView& view = c.situation.hosts[h];
    const machine::ClockFacts& clock = view.facts.clock;
    if (!host.best_round_trip_ns) continue;
    int64_t wall_less_mono = clock.mono_ns != 0 ? clock.wall_ns - clock.mono_ns : host.hello.wall_ns - host.hello.now_ns;
    if (clock.mono_ns == 0 && host.hello.wall_ns == 0) continue;
    view.clock_offset_ns = wall_less_mono + host.clock_offset_ns - wall_less_mono_ns;
    view.clock_error_ns = *host.best_round_trip_ns / 2;
  }
}

void SurveyStep::choose_parts(bool running, int64_t wall_less_mono_ns) {
  note_clocks(wall_less_mono_ns);
  c.situation.job.wants_gpus = wants_gpus(job, c.situation);
  if (running) return;
  c.choices = choose(c.situation, wish(), c.best ? c.networks[*c.best] : c.networks.empty() ? Network{} : c.networks.front());
}

void SurveyStep::place(const std::optional<Plan>& plan) {
  for (size_t h = 0; h < c.situation.hosts.size(); ++h) {
    doctor::HostView& view = c.situation.hosts[h];
    view.address = c.choices->hosts[h].address;
    view.interface = c.choices->hosts[h].interface;
    if (plan) view.ranks = plan->hosts[h].ranks;
  }
  if (plan) c.situation.job.world = plan->world;
}

void SurveyStep::examine() {
  c.examination = doctor::examine(c.situation, job.only);
  doctor::accept(c.situation, job.accepted, c.examination);
  c.examined = true;
  c.examined_at = now;
}

}  // namespace phalanx::job
