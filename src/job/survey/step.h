// Inside the survey: one step of it. Its parts are
//   job/survey/survey.cc   the probes, and what is concluded from them
//   job/survey/mesh.cc     the mesh test
//   job/survey/speed.cc    the speed of the links, measured while the program starts
#pragma once

#include "job/plan.h"
#include "job/survey/survey.h"
#include "job/turn.h"

namespace phalanx::job {

// The events are the calls of the first part; they are for a supervisor whose phase is checking or running.
struct SurveyStep : Turn {
  Survey& c;

  void begin();
  void take(size_t h, const wire::Probed& m);
  void take(size_t h, const wire::Listening& m);
  void take(size_t h, const wire::Dialed& m);
  void missed(size_t h, const base::Error& error);  // its connection has ended
  void progress();                                  // at every tick, and whenever a host has answered
  void begin_speed() { c.stage = Survey::Stage::kMeasuring, c.round = 0; }
  void measure();  // at every tick some time after the start of the ranks
  bool measures_later() const;

  // When surveyed. running: the choices stand, for the ranks run by them. wall_less_mono_ns: of our clocks.
  void choose_parts(bool running, int64_t wall_less_mono_ns);
  void place(const std::optional<Plan>& plan);  // none: `check` reports all the same
  void examine();

  void set_job();
  GpuRequest wish() const;

 private:
  bool asking() const {
    return c.stage == Survey::Stage::kProbing || c.stage == Survey::Stage::kListening || c.stage == Survey::Stage::kDialing;
  }
  bool measuring() const { return c.stage == Survey::Stage::kMeasuring && c.round > 0; }
  bool measures_first() const { return job.check_only; }
  std::vector<std::vector<size_t>> peers_of_all() const;
  void probe(size_t h);
  bool memory_held(size_t h) const;
  void await(const std::vector<bool>& asked, os::milliseconds patience);
  void answered(size_t h);
  std::vector<size_t> busy_hosts() const;
  void note_clocks(int64_t wall_less_mono_ns);
  bool in_mesh(size_t h) const;
  void begin_mesh();
  void listen_on_network();
  void dial_round();
  void end_round();
  void end_mesh();
  void end_speed();
  void ask_firewalls();
  void stop_listening();
};

}  // namespace phalanx::job
