// How long the parts of a step take where it is computed. A GPU works while the host has gone on: there the time is between marks in the
// GPU's own order of work, and read when it has come past them, so that nothing is waited for.
#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <memory>
#include <vector>

#include "engine/train/report/step_report.h"

namespace phalanx::engine::train {

class PhaseClock {
 public:
  explicit PhaseClock(at::Device device);
  ~PhaseClock();

  // From here on time counts.
  void start();
  // The time since start() or the last of these is that part's.
  void end(double StepTimes::* part);
  // Adds to each part what has ended since the last call and the device has come past; the rest waits for the next call.
  void add_to(StepTimes* times);

 private:
  struct Marks;
  using Clock = std::chrono::steady_clock;
  std::unique_ptr<Marks> marks_;  // null: the host's time
  Clock::time_point last_ = Clock::now();
  StepTimes waiting_;
};

}  // namespace phalanx::engine::train
