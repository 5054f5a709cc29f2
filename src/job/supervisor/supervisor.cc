#include "job/supervisor/supervisor.h"

#include <signal.h>

#include "job/supervisor/step.h"

namespace phalanx::job {

void Step::on(const HostSaid& event) {
  HostState& host = s.hosts[event.host];
  if (host.ended || s.phase == Phase::kEnded) return;
  host.heard = now;
  std::visit([&](const auto& message) { take(event.host, message); }, event.message);
}

void Step::on(const HostReported& event) {
  if (!is_of_its_own(s, event)) return;
  s.hosts[event.host].heard = now;
  s.hosts[event.host].heard_since += event.bytes;
  if (auto* output = std::get_if<wire::Output>(&event.report)) {
    s.stall.movement.output(static_cast<int>(output->rank), output->data, output->kind == wire::OutputKind::kProgress, now);
  } else if (auto* pulse = std::get_if<wire::Pulse>(&event.report)) {
    s.slow.stragglers.take(*pulse);
  } else if (auto& advanced = std::get<RankAdvanced>(event.report); advanced.progress.step) {
    s.ranks[advanced.rank].step = advanced.progress.step;
    s.stall.movement.step(static_cast<int>(advanced.rank), *advanced.progress.step, now);
  }
}

bool Step::is_rank_of(size_t h, uint32_t rank) const { return job::is_rank_of(s, h, rank); }

void Step::take(size_t h, const wire::Exited& m) {
  if (!is_rank_of(h, m.rank)) return;
  RankState& rank = s.ranks[m.rank];
  if (rank.over()) return;
  rank.exited = true;
  rank.status = static_cast<int>(m.status);
  rank.stopped_by_us = m.stopped_by_us;
  rank.at = os::Mono{m.at_ns - s.hosts[h].clock_offset_ns};
  rank.error_file = m.error_file;
  rank.last_words = m.last_words;
  rank.signs = m.signs;
  if (rank.failed() && s.phase == Phase::kRunning) stop(SIGTERM, false);
  maybe_all_over();
}

void Step::take(size_t h, const wire::Connected& m) {
  if (is_rank_of(h, m.rank)) s.ranks[m.rank].connected = true;
}

// Cristian's algorithm: the host read its clock somewhere within the round trip; the shortest round trip errs least.
void Step::take(size_t h, const wire::Pong& m) {
  HostState& host = s.hosts[h];
  host.answered = now;
  host.heard_since = 0;
  if (m.nonce != host.nonce) return;
  int64_t round_trip = (now - host.pinged).count();
  if (host.best_round_trip_ns && round_trip > *host.best_round_trip_ns) return;
  host.best_round_trip_ns = round_trip;
  host.clock_offset_ns = m.now_ns - (host.pinged.ns + round_trip / 2);
}

void Step::ping(size_t h) {
  HostState& host = s.hosts[h];
  host.pinged = now;
  send(h, wire::Ping{++host.nonce, now.ns});
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

void Step::on(const Tick&) {
  if (s.phase == Phase::kEnded) return;
  check_silence();
  settle_refusals();
  check_opening();
  check_progress();
  check_store();
  check_stall();
  check_slow();
  check_memory();
  check_speed();
  if (s.phase == Phase::kStopping && now >= *s.stop_at) {
    if (!s.killed) kill(false);
    else finish(std::nullopt);
  }
  maybe_finished();
}

State initial_state(Job job, os::Mono now, int64_t wall_less_mono_ns) {
  State state;
  state.wall_less_mono_ns = wall_less_mono_ns;
  state.hosts.resize(job.hosts.size());
  for (HostState& host : state.hosts) host.heard = now;
  state.begun_at = state.ticked = now;
  state.job = std::move(job);
  return state;
}

Actions step(State& state, const Event& event, os::Mono now) {
  Step one{state, now, {}};
  // Not for a report: it is read in a row of many, and what the next tick sees is enough.
  if (!std::holds_alternative<HostReported>(event)) one.notice_sleep();
  std::visit([&](const auto& e) { one.on(e); }, event);
  auto end = std::find_if(one.actions.begin(), one.actions.end(), [](const Action& a) { return std::holds_alternative<End>(a); });
  if (end != one.actions.end()) one.actions.erase(end + 1, one.actions.end());  // a loop over the hosts may still have been under way
  return std::move(one.actions);
}

// Asked for every frame of output: without a search over the hosts.
bool is_rank_of(const State& state, size_t host, uint32_t rank) {
  if (state.phase < Phase::kRunning || !state.plan || rank >= state.ranks.size() || host >= state.plan->hosts.size()) return false;
  int64_t after_first = static_cast<int64_t>(rank) - state.plan->hosts[host].first_rank;
  return after_first >= 0 && after_first < state.plan->hosts[host].ranks;
}

bool is_of_its_own(const State& state, const HostReported& event) {
  if (auto* pulse = std::get_if<wire::Pulse>(&event.report))
    return std::all_of(pulse->ranks.begin(), pulse->ranks.end(),
                       [&](const wire::RankPulse& rank) { return is_rank_of(state, event.host, rank.rank); });
  auto* output = std::get_if<wire::Output>(&event.report);
  return is_rank_of(state, event.host, output ? output->rank : std::get<RankAdvanced>(event.report).rank);
}

}  // namespace phalanx::job
