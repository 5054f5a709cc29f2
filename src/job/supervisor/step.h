// Inside the supervisor: one step, the state it works on and the actions it collects. Its parts are
//   supervisor.cc          the entrance, what hosts say while ranks run, and the tick
//   job/attempt/launch.cc   opening, preparing, reaching, starting
//   job/survey/survey.cc   probe, choices, examination
//   job/survey/mesh.cc    the mesh test
//   job/supervisor/memory.cc   a start by what an earlier run's checks found
//   job/survey/speed.cc   the speed of the links, measured while the program starts
//   job/attempt/stall.cc    a run that stands still
//   job/attempt/slow.cc     a run that goes slowly
//   job/attempt/end.cc      lost hosts, stopping, killing, finishing
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "job/supervisor/supervisor.h"

namespace phalanx::job {

// One step: the state, the time, and the actions collected so far.
struct Step {
  State& s;
  os::Mono now;
  Actions actions;

  void send(size_t host, ToHost message) { actions.push_back(Send{host, std::move(message)}); }
  void tell(Note note) { actions.push_back(Tell{std::move(note)}); }
  bool is_rank_of(size_t h, uint32_t rank) const;  // and runs, or has run
  bool alive(size_t h) const { return s.hosts[h].open && !s.hosts[h].ended; }

  void on(const HostSaid& event);
  void on(const HostReported& event);
  void on(const HostEnded& event);
  void on(const OperatorSignal& event);
  void on(const Tick&);
  void on(const HostProved&) {}  // between attempts only (run.cc)

  void take(size_t h, const wire::Hello& m);
  void take(size_t h, const wire::Prepared& m);
  void take(size_t h, const wire::StoreOpened& m);
  void take(size_t h, const wire::Reached& m);
  void take(size_t h, const wire::Started& m);
  void take(size_t h, const wire::Exited& m);
  void take(size_t h, const wire::Connected& m);
  void take(size_t h, const wire::Pong& m);
  void take(size_t h, const wire::Finished& m);
  void take(size_t h, const wire::Probed& m);
  void take(size_t h, const wire::Listening& m);
  void take(size_t h, const wire::Dialed& m);
  void take(size_t h, const wire::Sampled& m);
  void take(size_t h, const wire::Dug& m);
  void take(size_t h, const wire::Trouble& m) { tell(HostTrouble{h, m.text}); }

  void refuse(size_t h, base::Error error);
  void refuse_running(Verdict verdict);
  void settle_refusals();
  void all_open();
  bool make_the_plan();  // false: there is none, and the end is decided (or it is only a check)
  void prepare_hosts();
  bool checks() const { return s.job.check_only || s.job.preflight != Preflight::kOff; }
  bool starts_by_memory() const;
  void begin_by_memory();
  void check_memory();
  bool checking() const;
  void begin_checks();
  void probe(size_t h);
  bool memory_held(size_t h) const;
  void host_missed(size_t h, const base::Error& error);
  void check_progress();
  void probes_done();
  bool in_mesh(size_t h) const;
  void begin_mesh();
  bool measures_first() const { return s.job.check_only; }
  void listen_on_network();
  void dial_round();
  void end_round();
  void end_mesh();
  void ask_firewalls();
  void stop_listening();
  bool measures_later() const;
  void begin_speed();
  void check_speed();
  void end_speed();
  void await(const std::vector<bool>& hosts, os::milliseconds patience);
  void answered(size_t h);
  void end_checks();
  void note_clocks();
  void settle_plan();
  void open_store();
  void maybe_prepared();
  void try_next_address(size_t h, const base::Error& error);
  void start_ranks();
  void ping(size_t h);
  bool deaf(const HostState& host) const;
  os::nanoseconds slept_for() const;
  void notice_sleep();
  void check_silence();
  void check_opening();
  void check_store();
  void check_stall();
  void check_slow();
  void take_gpus(size_t h, const wire::Sampled& m);
  void ask_samples(Stall::Stage stage);
  void samples_done();
  void ask_stacks();
  diagnosis::HangInput hang_input() const;
  void tell_stall();
  void stop_stalled();
  bool stall_answered(size_t h, uint32_t id, Stall::Stage stage);
  void stop(int signal_number, bool by_operator);
  void kill(bool by_operator);
  void maybe_all_over();
  void finish(std::optional<Verdict> verdict);
  void maybe_finished();
  std::vector<int> awaited() const;
};

template <typename Predicate>
bool all_hosts(const State& s, Predicate predicate) {
  return std::all_of(s.hosts.begin(), s.hosts.end(), predicate);
}

}  // namespace phalanx::job
