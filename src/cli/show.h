// What a person sees of a run, and what stays of it: the terminal and the run directory, fed by the runner.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/run_options.h"
#include "job/runner.h"
#include "os/loop.h"

namespace cli {

class Show {
 public:
  // A run (not a plan) gets its directory here. The loop and options must outlive the Show.
  static base::Result<Show> open(os::Loop& loop, const RunOptions& options);
  Show(Show&&) noexcept;
  ~Show();

  std::string run_id() const;
  job::Audience& audience();
  // Called when the terminal takes more after it had been full.
  void on_ready(std::function<void()> callback);
  // The last word: verdict, record, exit code.
  int report(const job::State& state, const job::Verdict& verdict);

 private:
  class Impl;
  explicit Show(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cli
