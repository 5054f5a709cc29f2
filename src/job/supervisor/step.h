// Inside the supervisor: one step, which joins the machines of the survey and of the attempt. Its parts are
//   supervisor.cc   the entrance: which event belongs to which machine; opening; the tick
//   checks.cc       when a survey is made, and what its result means for the run
//   contact.cc      hosts that fall silent or are lost, and a launcher that did not run itself
#pragma once

#include "job/attempt/step.h"
#include "job/supervisor/supervisor.h"
#include "job/survey/step.h"

namespace phalanx::job {

struct Step {
  State& s;
  os::Mono now;
  Actions actions;

  Turn turn() { return {s.job, s.hosts, now, actions}; }
  SurveyStep survey() { return {turn(), s.survey}; }
  AttemptStep attempt() { return {turn(), s, s.survey.choices}; }

  void on(const HostSaid& event);
  void on(const HostReported& event);
  void on(const HostEnded& event);
  void on(const OperatorSignal& event);
  void on(const Tick&);
  void on(const HostProved&) {}  // between attempts only (run.cc)

  void take(size_t h, const wire::Hello& m);
  void take(size_t h, const wire::Pong& m);
  void take(size_t h, const wire::Trouble& m) { turn().tell(HostTrouble{h, m.text}); }
  template <typename Message>
  void take(size_t h, const Message& m) {
    if constexpr (requires { survey().take(h, m); }) {
      if (surveys()) survey().take(h, m), surveyed();
    } else {
      attempt().take(h, m);
    }
  }

  // checks.cc
  bool surveys() const { return s.phase == Phase::kChecking || s.phase == Phase::kRunning; }
  bool checks() const { return s.job.check_only || s.job.preflight != Preflight::kOff; }
  void all_open();
  void begin_survey();
  void surveyed();
  void decide(bool runs);
  bool starts_by_memory() const;
  void begin_by_memory();
  void check_memory();

  // contact.cc
  void missed(size_t h, const base::Error& error);
  bool deaf(const HostState& host) const;
  os::nanoseconds slept_for() const;
  void notice_sleep();
  void check_silence();
  void check_opening();
};

}  // namespace phalanx::job
