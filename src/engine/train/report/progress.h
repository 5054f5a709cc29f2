// What a rank tells the world while it works: lines for people, log.jsonl, TensorBoard's file, a picture of the losses, and events for
// the launcher's bar.
//
// Only rank 0 speaks to people and writes files; every rank sends events if PHALANX_EVENT_FD names a descriptor
// (wire/rank_event.h). Losses go to stdout, everything else to stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/language.h"
#include "base/result.h"
#include "engine/train/report/metrics.h"
#include "engine/train/report/run_log.h"
#include "engine/train/report/step_report.h"
#include "engine/train/report/tensorboard.h"

namespace phalanx::engine::train {

base::Language language_here();  // PHALANX_LANG, else the locale

class Progress {
 public:
  // event_fd: -1 for none; stays the caller's.
  Progress(int rank, int64_t log_every, int event_fd);

  // Rank 0 keeps <folder>/log.jsonl and, with facts.tensorboard, files in <folder>/tensorboard: continues them behind `step` (0: starts
  // anew). Without this call there are no files.
  base::Status begin(const std::string& folder, int64_t step, int64_t total_steps, const RunFacts& facts);

  void note(std::string_view line);   // one line to stderr
  void phase(std::string_view name);  // "load", "train", "eval", "save", "sample", "done"
  // True if step() will print this step: what is dear to find out is wanted for such steps only. The same on all ranks.
  bool prints(int64_t step) const { return step % log_every_ == 0 || step == total_; }
  // Every step; decides itself what to print (each log_every steps, the last, and never silent for long) and to send.
  void step(const StepReport& report);
  void validation(int64_t step, double loss);
  // Behind the last step, on rank 0: where the time has gone, and <folder>/loss.svg with the losses of the whole log.
  base::Status finish();

 private:
  using Clock = std::chrono::steady_clock;
  void send();
  void print(const StepReport& report);
  void keep(const base::Status& written);

  int rank_;
  int64_t total_ = 0;
  int64_t log_every_;
  int event_fd_;
  base::Language language_;  // of notes
  RunFacts facts_;
  std::string folder_;
  RunLog log_;
  TensorBoard board_;
  StepReport last_;
  Means means_;              // since the last printed line
  double tokens_per_s_ = 0;  // of the last means that were looked at
  int64_t skipped_ = 0;      // steps
  bool keeps_ = true;        // the last line could be written
  RunTimes run_;             // since begin()
  std::string phase_ = "load";
  Clock::time_point begun_ = Clock::now();
  Clock::time_point phase_begun_ = begun_;
  Clock::time_point printed_ = begun_;
  Clock::time_point sent_{};
};

// The descriptor of PHALANX_EVENT_FD, made non-blocking; -1 when it is not set or not a descriptor of ours.
int event_descriptor();

}  // namespace phalanx::engine::train
