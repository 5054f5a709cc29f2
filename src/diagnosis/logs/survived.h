// What did not end the run: trouble after which work went on, and what programs say while they end after the training was over. Pure.
#pragma once

#include "diagnosis/logs/scan.h"

namespace phalanx::diagnosis {

class Survival {
 public:
  // facts must outlive it.
  explicit Survival(const LogFacts& facts) : facts_(facts) {}

  // The event's writer counted on after it, or others did so for longer than a rank can be ahead of another, or the training came to its
  // end, or the connection that had failed was made. False where nothing tells.
  bool survived(const LogEvent& event) const;
  // The training was over before the event, in the event's file.
  bool after_the_end(const LogEvent& event) const;
  // The last line of the file in which work was counted or the end was told; 0: none.
  uint64_t last_work(size_t file) const;

 private:
  const LogFacts& facts_;
};

}  // namespace phalanx::diagnosis
