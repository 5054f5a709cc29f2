// The progress of a rank that reports none, read from the lines that it prints: "step 5/300 loss 16.7" (logs/step_line.h). What the lines
// do not say is taken from its progress bar: the Trainer prints the loss as a dictionary, and the steps as a bar. Pure; the clock is given.
//
// Of many lines only one per kPeriod is read; the last one is kept until then. A rank that reports progress itself, or whose bar shows a
// loss (logs/bar_progress.h), needs none of this.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "os/clock.h"
#include "wire/rank_event.h"

namespace phalanx::logs {

class LineProgress {
 public:
  static constexpr std::chrono::milliseconds kPeriod{200};

  // Whole lines.
  std::optional<wire::RankProgress> take(std::string_view lines, os::Mono now);
  void bar(std::string_view state) { bar_ = state; }
  void reports_itself() { silent_ = true; }
  void of_ranks(int world) { world_ = world; }  // how many the job has
  // What take() has not read yet, once kPeriod is over: a rank may say nothing more for long.
  std::optional<wire::RankProgress> due(os::Mono now);
  // The same at once: at the end.
  std::optional<wire::RankProgress> last();

 private:
  std::optional<wire::RankProgress> read(std::string_view lines);

  std::string bar_, held_;
  std::optional<os::Mono> read_at_;
  bool silent_ = false;
  int world_ = 1;
};

}  // namespace phalanx::logs
