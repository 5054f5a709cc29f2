// What a person sees of a run, and what stays of it: the terminal and the run directory, fed by the runner.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/flags/run_options.h"
#include "cli/live.h"
#include "job/runner.h"
#include "os/fd.h"
#include "os/loop.h"

namespace phalanx::cli {

class Show {
 public:
  // A run (not a plan) gets its directory here. The loop and options must outlive the Show.
  static base::Result<Show> open(os::Loop& loop, const RunOptions& options, const job::Job& job);
  Show(Show&&) noexcept;
  ~Show();

  std::string run_id() const;
  job::Audience& audience();
  // What --sync has copied, for the record.
  void synced(const base::Json& what);
  // The run is about to be stopped because of --timeout.
  void timed_out();
  // Who asks for the run to be stopped (`phalanx stop`) is given to this.
  void on_stop(StopRun stop);
  void on_look(std::function<void()> look);
  void looked(const std::string& json);
  // When all ranks have started the terminal is left for good, `word` is given the run's id (cli/detach.h) and left_ is called.
  void leave_when_started(os::Fd word, std::function<void()> left);
  // The last word: verdict, record, exit code.
  int report(const job::State& state, const job::Verdict& verdict);

 private:
  class Impl;
  explicit Show(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace phalanx::cli
