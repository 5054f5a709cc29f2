// The complete output of one rank: ranks/<rank>.log in the run directory. Plain text to grep: stdout and stderr in the
// order of arrival, nothing added to a line. A progress bar leaves one line when it starts, one every kBarPeriod, and
// its last state. When its bytes came is kept beside it (logs/runs/log_times.h).
//
// Writes are gathered up to kBufferBytes and done at the latest by idle(), which the owner calls several times a second. What becomes of
// a write that fails: logs/runs/files.h.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "logs/progress_bar.h"
#include "logs/runs/files.h"
#include "os/clock.h"

namespace phalanx::logs {

class RankLog {
 public:
  static constexpr size_t kBufferBytes = 32 << 10;
  static constexpr std::chrono::seconds kBarPeriod{30};
  static constexpr int64_t kTimesApartMs = 10;
  static constexpr size_t kMaxBars = 8;  // told apart at a time; the longest unchanged is forgotten

  // Appends to what is there (a restarted rank goes on in its log). files must outlive it.
  RankLog(Files& files, FileId file) : files_(files), file_(file) {}

  // Whole lines, as LineSplitter gives them.
  void lines(std::string_view bytes);
  // One state of a bar.
  void progress(std::string_view state, os::Mono now);
  void idle();
  // The last states and everything buffered. The log takes no more after this.
  void close();

 private:
  struct SeenBar {
    Bar bar;
    std::string text;      // the latest state
    bool written = false;  // it is in the log
    int patience = 0;      // of a complete bar: calls of idle() until it is written, in case its last line comes and replaces it
    os::Mono written_at;
  };
  SeenBar& find_bar(Bar bar, os::Mono now);
  void write_state(SeenBar& seen);
  void write_buffer();
  void put(std::string_view bytes);

  Files& files_;
  FileId file_;
  std::string buffer_;
  std::vector<TimeMark> times_;  // of buffer_, kTimesApart or more from one another
  std::vector<SeenBar> bars_;    // oldest first
};

}  // namespace phalanx::logs
