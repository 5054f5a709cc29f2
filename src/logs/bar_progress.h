// The progress of a rank that reports none, read from its own training bar: tqdm's count and the loss in its postfix. So there are curves
// also of programs that know nothing of us. Pure; the clock is given.
//
// Only a bar that shows a loss counts: others count files, tokens or evaluation steps. A bar that starts again (the next epoch) goes on
// where the last one ended. At most one point in kPeriod, and the bar's last state.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "logs/progress_bar.h"
#include "os/clock.h"
#include "wire/rank_event.h"

namespace phalanx::logs {

class BarProgress {
 public:
  static constexpr std::chrono::milliseconds kPeriod{500};

  std::optional<wire::RankProgress> take(const Bar& bar, os::Mono now);

 private:
  double before_ = 0;  // steps of earlier epochs
  double done_ = 0;    // of this one
  std::optional<os::Mono> given_at_;
};

// A bar that ends comes as the first of whole lines (logs/line_splitter.h): its last state, if `lines` begin with the end of the bar whose
// latest state is `bar`; else "".
std::string_view last_state(std::string_view bar, std::string_view lines);

// "loss=2.31, lr=1e-4" or "train_loss: 2.31": the first number that a word ending in "loss" is given.
std::optional<double> loss_in(std::string_view postfix);

}  // namespace phalanx::logs
