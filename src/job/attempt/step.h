// Inside the attempt: one step of it. Its parts are
//   job/attempt/launch.cc   preparing, reaching, starting
//   job/attempt/stall.cc    a run that stands still
//   job/attempt/slow.cc     a run that goes slowly
//   job/attempt/end.cc      lost hosts, stopping, killing, finishing
//   job/attempt/verdict.cc  who broke first
#pragma once

#include "job/attempt/attempt.h"

namespace phalanx::job {

// The events are the calls of the first part.
struct AttemptStep : Turn {
  Attempt& s;
  const std::optional<Choices>& choices;  // of the survey, if it was made

  void take(size_t h, const wire::Prepared& m);
  void take(size_t h, const wire::StoreOpened& m);
  void take(size_t h, const wire::Reached& m);
  void take(size_t h, const wire::Started& m);
  void take(size_t h, const wire::Exited& m);
  void take(size_t h, const wire::Connected& m);
  void take(size_t h, const wire::Sampled& m);
  void take(size_t h, const wire::Dug& m);
  void take(size_t h, const wire::Finished& m);
  void take(const HostReported& report);
  void lost(size_t h, base::Error error, std::optional<wire::GuardEnd> guard);  // the connection of a host that ran ranks has ended
  void interrupt();                                                             // by the operator
  void tick();

  bool make_the_plan();  // false: there is none, and the end is decided (or it is only a check)
  void prepare_hosts();
  void refuse(size_t h, base::Error error);
  void refuse_running(Verdict verdict);
  void settle_refusals();
  void finish(std::optional<Verdict> verdict);
  void maybe_finished();
  bool is_rank_of(size_t h, uint32_t rank) const { return job::is_rank_of(s, h, rank); }

 private:
  void open_store();
  void maybe_prepared();
  void try_next_address(size_t h, const base::Error& error);
  void start_ranks();
  void check_store();
  void check_stall();
  bool stalls() const;
  void check_slow();
  void take_pulse(size_t h, const wire::Pulse& pulse);
  void check_shares();
  void ask_shares(uint32_t looks);
  void take_shares(size_t h, const wire::Sampled& m);
  void shares_are_known();
  void take_gpus(size_t h, const wire::Sampled& m);
  bool early_look_is_due() const;
  bool told_early(const diagnosis::Diagnosis& verdict) const;
  bool devices() const;
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
  std::vector<int> awaited() const;
};

}  // namespace phalanx::job
