// What many steps come to: means for a line of the log, and the sum of a run. Pure; cheap for each step.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/train/report/event_file.h"
#include "engine/train/report/step_report.h"

namespace phalanx::engine::train {

// The steps since the last line.
class Means {
 public:
  void add(const StepReport& report);
  int64_t steps() const { return steps_; }
  double tokens_per_s() const { return seconds() > 0 ? tokens_ / seconds() : 0; }  // of all ranks together; validation and saving left out
  double mfu(const RunFacts& facts) const;                                         // 0 to 1; 0 where it cannot be known
  StepTimes times() const;                                                         // of one step
  double overlap() const { return steps_ > 0 ? overlap_ / static_cast<double>(steps_) : 0; }
  double loss() const { return steps_ > 0 ? loss_ / static_cast<double>(steps_) : 0; }

 private:
  double seconds() const { return sum_.all(); }
  int64_t steps_ = 0;
  double tokens_ = 0, overlap_ = 0, loss_ = 0;
  StepTimes sum_;
};

// A line of log.jsonl, and the same for TensorBoard. `last`: the newest step. `skipped`: steps since the program began.
base::Json log_line(const StepReport& last, const Means& means, const RunFacts& facts, int64_t skipped);
std::vector<Scalar> scalars(const StepReport& last, const Means& means, const RunFacts& facts);
// "step 120/1000  loss 2.3141  lr 1.0e-03  norm 0.82  15.3k tokens/s  mfu 12 %  eta 3m12s", without what is not known.
std::string terminal_line(const StepReport& last, const Means& means, const RunFacts& facts, int64_t total, double eta_s);

// Where the time of a run has gone.
struct RunTimes {
  double all = 0;                        // seconds since the training began
  int64_t steps = 0;                     // made since then
  StepTimes sum;                         // of all steps
  std::map<std::string, double> phases;  // seconds in "save", "eval", …
};
// Lines: the shares of all time, and a warning with what to change where too much of it is waiting. Without steps: "".
std::string summary(const RunTimes& times, const RunFacts& facts);

std::string short_duration(double seconds);  // "45s", "3m12s", "1h04m", "2d03h"

}  // namespace phalanx::engine::train
