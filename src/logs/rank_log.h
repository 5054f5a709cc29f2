// The complete output of one rank: ranks/<rank>.log in the run directory. Plain text to grep: stdout and stderr in the
// order of arrival, nothing added to a line. A progress bar leaves one line when it starts, one every kBarPeriod, and
// its last state.
//
// Writes are buffered up to kBufferBytes and done at the latest by idle(), which the owner calls several times a second.
// A write that fails (full disk) is told once through `warn`; what does not fit is dropped, the run goes on, and when
// writing works again a line in the log says how much is missing.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "logs/progress_bar.h"
#include "os/clock.h"
#include "os/fd.h"

namespace logs {

// Called once per log with one sentence for people.
using Warn = std::function<void(const std::string&)>;

class RankLog {
 public:
  static constexpr size_t kBufferBytes = 32 << 10;
  static constexpr std::chrono::seconds kBarPeriod{30};
  static constexpr size_t kMaxBars = 8;  // told apart at a time; the longest unchanged is forgotten

  // Appends to what is there (a restarted rank goes on in its log). 0600.
  static base::Result<RankLog> open(const std::string& path, Warn warn);
  RankLog(RankLog&&) = default;

  // Whole lines, as LineSplitter gives them.
  void lines(std::string_view bytes);
  // One state of a bar.
  void progress(std::string_view state, os::Mono now);
  void idle();
  // The last states and everything buffered. The log takes no more after this.
  void close();

  uint64_t lost_bytes() const { return lost_bytes_; }

 private:
  struct SeenBar {
    Bar bar;
    std::string text;      // the latest state
    bool written = false;  // it is in the log
    int patience = 0;      // of a complete bar: calls of idle() until it is written, in case its last line comes and replaces it
    os::Mono written_at;
  };
  RankLog(os::Fd fd, std::string path, Warn warn) : fd_(std::move(fd)), path_(std::move(path)), warn_(std::move(warn)) {}
  SeenBar& find_bar(Bar bar, os::Mono now);
  void write_state(SeenBar& seen);
  void write_buffer();
  void put(std::string_view bytes);
  void write_out(std::string_view bytes);
  bool resume();
  void failed(int error_number, std::string_view unwritten);

  os::Fd fd_;
  std::string path_;
  Warn warn_;
  std::string buffer_;
  std::vector<SeenBar> bars_;  // oldest first
  uint64_t lost_bytes_ = 0;    // since the log was opened
  uint64_t lost_unsaid_ = 0;   // of these, not yet mentioned in the log
  int last_error_ = 0;
  bool line_open_ = false;  // the file ends in half a line
  bool warned_ = false;
};

}  // namespace logs
