// A run, performed: connections and the pure part (run.h) joined by the loop. What the user sees goes through Audience.
#pragma once

#include <functional>
#include <memory>

#include "hosts/connect/opener.h"
#include "job/look.h"
#include "job/run.h"
#include "os/loop.h"
#include "wire/rank_event.h"

namespace phalanx::job {

// Whoever watches a run: the terminal and the run directory. Called from the loop; must not wait for a reader or a disk: hosts are read at
// their own pace, for their answers to pings and the ends of ranks come the same way. The state is that of the attempt.
class Audience {
 public:
  virtual ~Audience() = default;
  // at: on this host's wall clock, nanoseconds.
  virtual void output(const State& state, const wire::Output& output, int64_t wall_ns) = 0;
  virtual void progress(const State& state, int rank, const wire::RankProgress& progress) = 0;
  virtual void note(const State& state, const Note& note) = 0;
  virtual void event(const State& state, const Event& event) = 0;  // everything the supervisor saw, for events.jsonl
};

class Runner {
 public:
  Runner(os::Loop& loop, Audience& audience) : loop_(loop), audience_(audience) {}
  ~Runner();

  // Runs the loop until the end. transports: per host of the job, then per spare, outliving the call.
  base::Result<Verdict> run(Job job, const std::vector<const hosts::Transport*>& transports, hosts::Payload& payload,
                            hosts::OpenerOptions options);
  const State& state() const { return run_->attempt; }
  // What Ctrl-C does, asked from elsewhere. grace: instead of the job's own; kill: what a second Ctrl-C does. Only from the loop.
  void stop(std::optional<os::milliseconds> grace, bool kill);
  // What every rank does now, as JSON (docs/formats/control-socket.md); called back once, within kLookPatience, from the loop.
  void look(std::function<void(const std::string& json)> done);
  // What Ctrl-C does, because the time limit of the run has passed.
  void time_out(os::milliseconds limit);
  // From here on a hang-up of the terminal is nobody's wish: the run has left it.
  void ignore_hangup() { hangup_ignored_ = true; }

 private:
  void open_hosts();
  void close_hosts();
  // runner_proof.cc: between two attempts, what is left on hosts that have not said their end.
  void prove_empty(const std::vector<size_t>& candidates);
  void on_proof_frame(size_t place, size_t candidate, const wire::Frame& frame);
  void end_proof();
  void on_child(pid_t pid, int status);
  // number: of the attempt (run.h) whose connection it came over.
  void on_frame(int number, size_t host, const wire::Frame& frame);
  void on_report(size_t host, const wire::Frame& frame);
  void feed(const Event& event, std::optional<int> number = std::nullopt);
  void perform(const Action& action);
  void send(size_t host, const ToHost& message);
  // runner_look.cc
  void ask_look();
  void on_looked(size_t host, const wire::Sampled& sampled);
  void end_look();
  void cut_for_bad_frame(size_t host, const wire::Frame& frame, const base::Error& why);

  os::Loop& loop_;
  Audience& audience_;
  hosts::Payload* payload_ = nullptr;
  std::vector<const hosts::Transport*> transports_;
  hosts::OpenerOptions options_;
  std::unique_ptr<Run> run_;
  std::unique_ptr<hosts::Opener> opener_;                // of the attempt; none between attempts
  std::unique_ptr<hosts::Opener> prover_;                // between attempts
  std::vector<std::unique_ptr<hosts::Opener>> closing_;  // of attempts that have ended, until their processes have
  std::optional<Verdict> verdict_;
  os::TimerId tick_ = 0;
  LiveLook look_;
  bool hangup_ignored_ = false;
};

}  // namespace phalanx::job
