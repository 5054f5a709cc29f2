#include "job/supervisor.h"

#include <signal.h>

#include <algorithm>

#include <fmt/format.h>

namespace job {
namespace {

using base::ErrorKind;

// One step: the state, the time, and the actions collected so far.
struct Step {
  State& s;
  os::Mono now;
  Actions actions;

  void send(size_t host, ToHost message) { actions.push_back(Send{host, std::move(message)}); }
  void tell(Note note) { actions.push_back(Tell{std::move(note)}); }
  bool alive(size_t h) const { return s.hosts[h].open && !s.hosts[h].ended; }

  void on(const HostSaid& event);
  void on(const HostEnded& event);
  void on(const OperatorSignal& event);
  void on(const Tick&);

  void take(size_t h, const wire::Hello& m);
  void take(size_t h, const wire::Prepared& m);
  void take(size_t h, const wire::StoreOpened& m);
  void take(size_t h, const wire::Reached& m);
  void take(size_t h, const wire::Started& m);
  void take(size_t h, const wire::Exited& m);
  void take(size_t h, const wire::Connected& m);
  void take(size_t h, const wire::Pong& m);
  void take(size_t h, const wire::Finished& m);
  void take(size_t h, const wire::Trouble& m) { tell(HostTrouble{h, m.text}); }

  void refuse(size_t h, base::Error error);
  void settle_refusals();
  void all_open();
  void open_store();
  void maybe_prepared();
  void try_next_address(size_t h, const base::Error& error);
  void start_ranks();
  void ping(size_t h);
  void check_silence();
  void check_opening();
  void check_store();
  void stop(int signal_number, bool by_operator);
  void kill(bool by_operator);
  void maybe_all_over();
  void finish(std::optional<Verdict> verdict);
  void maybe_finished();
  std::vector<int> awaited() const;
};

template <typename Predicate>
bool all_hosts(const State& s, Predicate predicate) { return std::all_of(s.hosts.begin(), s.hosts.end(), predicate); }

void Step::on(const HostSaid& event) {
  HostState& host = s.hosts[event.host];
  if (host.ended || s.phase == Phase::kEnded) return;
  host.heard = now;
  std::visit([&](const auto& message) { take(event.host, message); }, event.message);
}

// --- opening and preparing ---------------------------------------------------------------------------------------------

void Step::take(size_t h, const wire::Hello& m) {
  HostState& host = s.hosts[h];
  host.open = true;
  host.hello = m;
  host.clock_offset_ns = m.now_ns - now.ns;  // late by one way of the connection; the first pong mends it
  ping(h);
  if (s.phase != Phase::kOpening) return send(h, wire::Finish{});  // it came after the end was decided
  if (all_hosts(s, [](const HostState& x) { return x.open; })) all_open();
}

void Step::all_open() {
  std::vector<wire::Hello> hellos;
  for (const HostState& host : s.hosts) hellos.push_back(host.hello);
  base::Result<Plan> plan = make_plan(s.job, hellos);
  if (!plan.ok()) {
    Verdict verdict;
    verdict.kind = Verdict::Kind::kRefused;
    verdict.exit_code = base::exit_code(plan.error().kind);
    verdict.refusals = {plan.error()};
    return finish(std::move(verdict));
  }
  s.plan = std::move(plan).value();
  s.ranks.resize(static_cast<size_t>(s.plan->world));
  s.addresses = meeting_addresses(s.job, hellos);
  s.phase = Phase::kPreparing;
  wire::Prepare prepare;
  prepare.run_id = s.job.run_id;
  prepare.token = s.job.token;
  prepare.lease_ms = static_cast<uint32_t>(kAgentLease.count());
  prepare.directory = s.job.directory;
  prepare.argv = s.job.argv;
  prepare.set = s.job.set;
  prepare.unset = s.job.unset;
  prepare.path_prefix = s.job.path_prefix;
  for (size_t h = 0; h < s.hosts.size(); ++h) send(h, prepare);
  open_store();
}

void Step::open_store() {
  s.meeting.reset();
  send(0, wire::OpenStore{s.addresses[s.address], static_cast<uint32_t>(s.job.master_port), s.job.serve_store});
}

void Step::take(size_t h, const wire::Prepared& m) {
  if (!m.outcome.ok) return refuse(h, base::Error(m.outcome.error));
  s.hosts[h].prepared = true;
  s.hosts[h].program = m.program;
  maybe_prepared();
}

void Step::take(size_t h, const wire::StoreOpened& m) {
  if (!m.outcome.ok) return try_next_address(h, m.outcome.error);
  s.meeting = Meeting{s.addresses[s.address], static_cast<int>(m.port), s.job.serve_store};
  maybe_prepared();
}

void Step::maybe_prepared() {
  if (s.phase != Phase::kPreparing || !s.meeting || !all_hosts(s, [](const HostState& x) { return x.prepared; })) return;
  s.hosts[0].reached = true;
  s.hosts[0].interface = s.hosts.size() == 1 ? "lo" : "";
  for (const wire::Address& a : s.hosts[0].hello.addresses)
    if (a.address == s.meeting->address) s.hosts[0].interface = a.interface;
  if (s.job.dry_run) {
    Verdict verdict;
    verdict.kind = Verdict::Kind::kPlanned;
    return finish(std::move(verdict));
  }
  if (s.hosts.size() == 1 || !s.job.serve_store) return start_ranks();
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
    if (h != 0) s.first_reach_error->context.push_back("checking that it can reach the store on " + s.job.hosts[0].target.name + ", where rank 0 runs");
    s.first_reach_error->hint = "phalanx run --master-addr ADDRESS …   (an address of " + s.job.hosts[0].target.name + " that every host can reach)";
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
  if (error.message.rfind(name, 0) != 0) error.message = name + ": " + error.message;
  s.hosts[h].refusal = std::move(error);
  if (!s.settle_at) s.settle_at = now + kSettle;
  settle_refusals();
}

// All refusals are told together: when every host has been heard, or a little after the first one.
void Step::settle_refusals() {
  if (!s.settle_at || s.phase >= Phase::kRunning) return;
  bool all = all_hosts(s, [&](const HostState& x) { return x.refusal || (s.phase == Phase::kOpening ? x.open : x.prepared); });
  if (!all && now < *s.settle_at) return;
  Verdict verdict;
  verdict.kind = Verdict::Kind::kRefused;
  for (const HostState& host : s.hosts)
    if (host.refusal) verdict.refusals.push_back(*host.refusal);
  verdict.exit_code = base::exit_code(verdict.refusals.front().kind);
  finish(std::move(verdict));
}

// --- running -----------------------------------------------------------------------------------------------------------

void Step::start_ranks() {
  s.phase = Phase::kRunning;
  s.started_at = now;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const PlannedHost& planned = s.plan->hosts[h];
    wire::Start start;
    start.store_address = s.meeting->address;
    start.store_port = static_cast<uint32_t>(s.meeting->port);
    start.defaults = host_defaults(*s.plan, s.hosts[h].interface);
    for (int local = 0; local < planned.ranks; ++local) {
      int rank = planned.first_rank + local;
      start.ranks.push_back({static_cast<uint32_t>(rank), static_cast<uint32_t>(local), rank_variables(s.job, *s.plan, rank, *s.meeting, 0)});
    }
    send(h, std::move(start));
  }
  tell(RunStarted{s.plan->world, s.hosts.size(), s.meeting->address, s.meeting->port});
}

void Step::take(size_t h, const wire::Started& m) {
  if (m.rank >= s.ranks.size()) return;
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
  verdict.exit_code = base::exit_code(ErrorKind::kUnfit);
  verdict.refusals = {std::move(error)};
  if (!s.verdict) s.verdict = std::move(verdict);
  stop(SIGTERM, false);
}

void Step::take(size_t h, const wire::Exited& m) {
  if (m.rank >= s.ranks.size()) return;
  RankState& rank = s.ranks[m.rank];
  if (rank.over()) return;
  rank.exited = true;
  rank.status = static_cast<int>(m.status);
  rank.stopped_by_us = m.stopped_by_us;
  rank.at = os::Mono{m.at_ns - s.hosts[h].clock_offset_ns};
  rank.error_file = m.error_file;
  if (rank.failed() && s.phase == Phase::kRunning) stop(SIGTERM, false);
  maybe_all_over();
}

void Step::take(size_t, const wire::Connected& m) {
  if (m.rank < s.ranks.size()) s.ranks[m.rank].connected = true;
}

// Cristian's algorithm: the host read its clock somewhere within the round trip; the shortest round trip errs least.
void Step::take(size_t h, const wire::Pong& m) {
  HostState& host = s.hosts[h];
  if (m.nonce != host.nonce) return;
  int64_t round_trip = (now - host.pinged).count();
  if (host.best_round_trip_ns && round_trip > *host.best_round_trip_ns) return;
  host.best_round_trip_ns = round_trip;
  host.clock_offset_ns = m.now_ns - (host.pinged.ns + round_trip / 2);
}

void Step::ping(size_t h) {
  HostState& host = s.hosts[h];
  host.pinged = now;
  send(h, wire::Ping{++host.nonce});
}

// --- losing hosts --------------------------------------------------------------------------------------------------------

void Step::on(const HostEnded& event) {
  size_t h = event.host;
  HostState& host = s.hosts[h];
  if (host.ended) return;
  host.ended = true;
  if (s.phase == Phase::kFinishing) return maybe_finished();
  if (s.phase == Phase::kEnded) return;
  if (s.phase < Phase::kRunning) return refuse(h, base::Error(event.error));
  const PlannedHost& planned = s.plan->hosts[h];
  bool any = false;
  for (int r = planned.first_rank; r < planned.first_rank + planned.ranks; ++r) {
    RankState& rank = s.ranks[static_cast<size_t>(r)];
    if (rank.over()) continue;
    rank.lost = any = true;
    rank.at = now;
  }
  if (any && !s.lost_host) {
    s.lost_host = h;
    s.lost_at = now;
    s.lost_error = event.error;
  }
  if (s.phase == Phase::kRunning && any) stop(SIGTERM, false);
  maybe_all_over();
}

void Step::check_silence() {
  bool slept = now - s.ticked > os::milliseconds(2500);  // we did not run: silence is ours
  s.ticked = now;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    HostState& host = s.hosts[h];
    if (!alive(h)) continue;
    if (slept || s.output_blocked) host.heard = now;
    if (now - host.pinged >= kPingEvery) ping(h);
    if (now - host.heard < kHostPatience) continue;
    actions.push_back(CutHost{h});
    base::Error lost = base::fail(ErrorKind::kUnreachable, s.job.hosts[h].target.name + ": lost contact with the host")
                           .because(fmt::format("nothing was heard from it for {} s: it is down, hung, or cut off", kHostPatience.count() / 1000))
                           .with_hint("ping -c 3 " + s.job.hosts[h].target.name);
    on(HostEnded{h, std::move(lost)});
  }
}

void Step::check_opening() {
  if (s.phase != Phase::kOpening || s.opening_told || now - s.begun_at < kOpeningSilence) return;
  s.opening_told = true;
  WaitingForHosts note;
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (!s.hosts[h].open && !s.hosts[h].ended) note.hosts.push_back(h);
  if (!note.hosts.empty()) tell(std::move(note));
}

void Step::check_store() {
  if (s.phase != Phase::kRunning || now - s.started_at < kStoreSilence) return;
  if (s.store_told_at && now - *s.store_told_at < 3 * kStoreSilence) return;
  std::vector<int> missing;
  bool any = false;
  for (size_t r = 0; r < s.ranks.size(); ++r) {
    any = any || s.ranks[r].connected;
    if (!s.ranks[r].connected && !s.ranks[r].over()) missing.push_back(static_cast<int>(r));
  }
  if (!any || missing.empty()) return;  // nobody uses the store, or everybody has met it
  s.store_told_at = now;
  tell(WaitingForStore{std::move(missing)});
}

// --- ending --------------------------------------------------------------------------------------------------------------

std::vector<int> Step::awaited() const {
  std::vector<int> ranks;
  for (size_t r = 0; r < s.ranks.size(); ++r)
    if (!s.ranks[r].over()) ranks.push_back(static_cast<int>(r));
  return ranks;
}

void Step::on(const OperatorSignal&) {
  ++s.operator_signals;
  if (s.phase == Phase::kFinishing || s.phase == Phase::kEnded) return;
  if (s.phase < Phase::kRunning) {
    Verdict verdict;
    verdict.kind = Verdict::Kind::kInterrupted;
    verdict.exit_code = base::exit_code(ErrorKind::kInterrupted);
    return finish(std::move(verdict));
  }
  if (s.operator_signals > 1) return kill(true);
  if (s.phase == Phase::kRunning) return stop(SIGTERM, true);
  tell(StoppingRanks{SIGTERM, awaited(), s.job.grace, true});
}

void Step::stop(int signal_number, bool by_operator) {
  if (s.phase != Phase::kRunning) return;
  s.phase = Phase::kStopping;
  s.stop_at = now + s.job.grace;
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (alive(h)) send(h, wire::Signal{static_cast<uint8_t>(signal_number)});
  std::vector<int> ranks = awaited();
  if (by_operator || !ranks.empty()) tell(StoppingRanks{signal_number, std::move(ranks), s.job.grace, by_operator});
  maybe_all_over();
}

void Step::kill(bool by_operator) {
  if (s.killed || s.phase != Phase::kStopping) return;
  s.killed = true;
  tell(KillingRanks{awaited(), by_operator});
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (alive(h)) send(h, wire::Signal{SIGKILL});
  s.stop_at = now + kKillPatience;
}

void Step::maybe_all_over() {
  if (s.phase != Phase::kRunning && s.phase != Phase::kStopping) return;
  if (std::all_of(s.ranks.begin(), s.ranks.end(), [](const RankState& r) { return r.over(); })) finish(std::nullopt);
}

void Step::finish(std::optional<Verdict> verdict) {
  if (s.phase == Phase::kFinishing || s.phase == Phase::kEnded) return;
  if (verdict && !s.verdict) s.verdict = std::move(verdict);
  s.phase = Phase::kFinishing;
  s.deadline = now + kFinishPatience;
  actions.push_back(AbandonOpening{});
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (alive(h)) send(h, wire::Finish{});
  maybe_finished();
}

void Step::take(size_t h, const wire::Finished& m) {
  s.hosts[h].finished = true;
  if (m.killed > 0 || m.left > 0) tell(HostLeftovers{h, static_cast<int>(m.killed), static_cast<int>(m.left)});
  maybe_finished();
}

void Step::maybe_finished() {
  if (s.phase != Phase::kFinishing) return;
  bool all = all_hosts(s, [](const HostState& x) { return x.finished || x.ended || !x.open; });
  if (!all && now < *s.deadline) return;
  s.phase = Phase::kEnded;
  actions.push_back(End{s.verdict ? *s.verdict : judge(s)});
}

void Step::on(const Tick&) {
  if (s.phase == Phase::kEnded) return;
  check_silence();
  settle_refusals();
  check_opening();
  check_store();
  if (s.phase == Phase::kStopping && now >= *s.stop_at) {
    if (!s.killed) kill(false);
    else finish(std::nullopt);
  }
  maybe_finished();
}

}  // namespace

State initial_state(Job job, os::Mono now) {
  State state;
  state.hosts.resize(job.hosts.size());
  for (HostState& host : state.hosts) host.heard = now;
  state.begun_at = state.ticked = now;
  state.job = std::move(job);
  return state;
}

Actions step(State& state, const Event& event, os::Mono now) {
  Step one{state, now, {}};
  std::visit([&](const auto& e) { one.on(e); }, event);
  return std::move(one.actions);
}

void heard(State& state, size_t host, os::Mono now) { state.hosts[host].heard = now; }

}  // namespace job
