#include "job/supervisor/supervisor.h"

#include <signal.h>

#include <fmt/format.h>

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
  attempt().take(event);
}

void Step::take(size_t h, const wire::Hello& m) {
  HostState& host = s.hosts[h];
  if (host.open) return;
  if (!s.job.build.empty() && m.build != s.job.build) {
    turn().send(h, wire::Finish{});
    return attempt().refuse(h, base::fail(base::ErrorKind::kUnreachable,
                                          fmt::format("{}: the agent is from another build of phalanx", s.job.hosts[h].target.name))
                                   .because(fmt::format("the build of the agent is {}, the launcher brings {}", m.build, s.job.build)));
  }
  host.open = true;
  host.hello = m;
  host.clock_offset_ns = m.now_ns - now.ns;  // late by one way of the connection; the first pong mends it
  turn().ping(h);
  if (s.phase != Phase::kOpening) return turn().send(h, wire::Finish{});  // it came after the end was decided
  if (all_hosts(s.hosts, [&](const HostState& x) { return x.open || (s.job.check_only && x.ended); })) all_open();
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

void Step::check_opening() {
  if (s.phase != Phase::kOpening || s.opening_told || now - s.begun_at < kOpeningSilence) return;
  s.opening_told = true;
  WaitingForHosts note;
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (!s.hosts[h].open && !s.hosts[h].ended) note.hosts.push_back(h);
  if (!note.hosts.empty()) turn().tell(std::move(note));
}

void Step::on(const OperatorSignal& event) {
  if (event.grace) s.job.grace = *event.grace;
  attempt().interrupt();
}

void Step::on(const Tick&) {
  if (s.phase == Phase::kEnded) return;
  check_silence();
  attempt().settle_refusals();
  check_opening();
  if (surveys()) survey().progress(), surveyed();
  attempt().tick();
  check_memory();
  if (s.phase == Phase::kRunning && now - s.started_at >= kMeasureAfter) survey().measure();
}

State initial_state(Job job, os::Mono now, int64_t wall_less_mono_ns) {
  State state;
  state.wall_less_mono_ns = wall_less_mono_ns;
  state.hosts.resize(job.hosts.size());
  for (HostState& host : state.hosts) host.heard = now;
  state.begun_at = state.ticked = state.survey.begun_at = now;
  state.job = std::move(job);
  return state;
}

Actions step(State& state, const Event& event, os::Mono now) {
  Step one{state, now, {}};
  const bool ran = state.phase == Phase::kRunning;
  // Not for a report: it is read in a row of many, and what the next tick sees is enough.
  if (!std::holds_alternative<HostReported>(event)) one.notice_sleep();
  std::visit([&](const auto& e) { one.on(e); }, event);
  if (!ran && state.phase == Phase::kRunning && !state.by_memory && one.survey().measures_later()) one.survey().begin_speed();
  auto end = std::find_if(one.actions.begin(), one.actions.end(), [](const Action& a) { return std::holds_alternative<End>(a); });
  if (end != one.actions.end()) one.actions.erase(end + 1, one.actions.end());  // a loop over the hosts may still have been under way
  return std::move(one.actions);
}

bool is_of_its_own(const State& state, const HostReported& event) {
  if (auto* pulse = std::get_if<wire::Pulse>(&event.report))
    return std::all_of(pulse->ranks.begin(), pulse->ranks.end(),
                       [&](const wire::RankPulse& rank) { return is_rank_of(state, event.host, rank.rank); });
  auto* output = std::get_if<wire::Output>(&event.report);
  return is_rank_of(state, event.host, output ? output->rank : std::get<RankAdvanced>(event.report).rank);
}

}  // namespace phalanx::job
