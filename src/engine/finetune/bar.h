// What people see of a long step of the work: on a terminal a bar that is drawn again in its line, elsewhere a line now and then. The
// launcher is told the same (wire/rank_event.h). Only rank 0 speaks to people.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "words/message.h"

namespace phalanx::engine::finetune {

class Bar {
 public:
  // event_fd: -1 for none; stays the caller's.
  Bar(bool speaks, int event_fd);
  ~Bar() { end(); }
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;

  // One step of the work, of `total` units, which are bytes, steps of the training, or parts of anything. `phase` is the launcher's name
  // for it.
  enum class Unit { kBytes, kSteps, kParts };
  void start(words::Text what, std::string_view phase, Unit unit, uint64_t total, uint64_t done = 0);
  void advance(uint64_t done);
  void advance(uint64_t done, uint64_t total);  // where the total is known only now
  void training(uint64_t done, double loss, double tokens_per_s);
  void end();
  void finish();  // the launcher is told that all is done

  void note(std::string_view line);  // to stderr
  void note(const words::Message& line);
  void printed(std::string_view line);  // to stdout
  double eta_s() const;                 // of the step under way; 0 before anything is done

 private:
  using Clock = std::chrono::steady_clock;
  void draw();
  void clear();
  void send();

  const bool speaks_, terminal_;
  int event_fd_;
  std::string what_, phase_;
  Unit unit_ = Unit::kBytes;
  uint64_t total_ = 0, done_ = 0, first_ = 0;
  double loss_ = 0, tokens_per_s_ = 0;
  bool drawn_ = false, open_ = false;
  Clock::time_point begun_{}, shown_{}, sent_{};
};

}  // namespace phalanx::engine::finetune
