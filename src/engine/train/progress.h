// What a rank tells the world while it works: lines for people, log.jsonl, and events for the launcher's bar.
//
// Only rank 0 speaks to people and writes log.jsonl; every rank sends events if PHALANX_EVENT_FD names a descriptor
// (wire/rank_event.h). Losses go to stdout, everything else to stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "os/fd.h"

namespace engine::train {

// Seconds of one step on this rank.
struct StepTimes {
  double data = 0;  // until the step's batch was there, on every rank
  double forward = 0;
  double backward = 0;   // with the reductions that went on meanwhile
  double optimizer = 0;  // with the norm, and until every rank has the new parameters
  double waited = 0;     // of backward and optimizer: for other ranks and their bytes
  double all() const { return data + forward + backward + optimizer; }
};

struct StepReport {
  int64_t step = 0;  // steps done
  double loss = 0;   // mean over the step's whole batch
  double lr = 0;
  double grad_norm = 0;
  bool skipped = false;  // a gradient was not finite, and loss scaling is on
  int64_t targets = 0;   // target tokens, of all ranks together
  StepTimes times;
};

class Progress {
 public:
  // event_fd: -1 for none; stays the caller's.
  Progress(int rank, int64_t log_every, int event_fd);

  // Rank 0 keeps <folder>/log.jsonl: continues it behind `step` (0: starts anew). Without this call there is no file.
  base::Status begin(const std::string& folder, int64_t step, int64_t total_steps);

  void note(std::string_view line);   // one line to stderr
  void phase(std::string_view name);  // "load", "train", "eval", "save", "sample", "done"
  // Every step; decides itself what to print (each log_every steps, the last, and never silent for long) and to send.
  base::Status step(const StepReport& report);
  base::Status validation(int64_t step, double loss);

 private:
  using Clock = std::chrono::steady_clock;
  void send();
  base::Status append(const base::Json& line);

  int rank_;
  int64_t total_ = 0;
  int64_t log_every_;
  int event_fd_;
  os::Fd log_;
  std::string log_path_;
  StepReport last_;
  double tokens_ = 0, seconds_ = 0;  // since the last printed line; validation and saving do not count
  double tokens_per_s_ = 0;          // of all ranks together
  std::string phase_ = "load";
  Clock::time_point printed_ = Clock::now();
  Clock::time_point sent_{};
};

// The descriptor of PHALANX_EVENT_FD, made non-blocking; -1 when it is not set or not a descriptor of ours.
int event_descriptor();

}  // namespace engine::train
