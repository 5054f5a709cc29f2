// When the lines of a rank's log were printed: ranks/<rank>.times beside ranks/<rank>.log. Lines of text, "<offset in the log> <ms since
// 1970>", in order; what stands in the log from one offset to the next came at the first one's time, or up to 10 ms later. A log that is
// turned takes its times with it (.log.1, .times.1). The file is never larger than its log and kLeastTimes.
#pragma once

#include <optional>
#include <string>

#include "logs/runs/files.h"
#include "os/fd.h"

namespace phalanx::logs {

inline constexpr uint64_t kLeastTimes = 64 << 10;

// ".../ranks/0.times" for ".../ranks/0.log".
std::string times_path(const std::string& log_path);
std::string time_line(TimeMark time);

// The times of one log, read in the order of its lines while it grows.
class LogTimes {
 public:
  // An invalid descriptor: there are none.
  explicit LogTimes(os::Fd file = {}) : file_(std::move(file)) {}

  // Of the byte at `offset`, which is at or behind the one asked for before. Nothing: no time is known for it.
  std::optional<int64_t> ms_at(uint64_t offset);

 private:
  bool read_mark(TimeMark& mark);

  os::Fd file_;
  std::string block_;
  size_t used_ = 0;  // of block_
  std::optional<TimeMark> now_, next_;
};

}  // namespace phalanx::logs
