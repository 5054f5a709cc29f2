#include "logs/runs/log_times.h"

#include <fmt/format.h>

#include "base/text.h"
#include "os/files.h"

namespace phalanx::logs {
namespace {

constexpr size_t kBlock = 64 << 10;
constexpr size_t kLongestLine = 64;
constexpr int64_t kMostMs = 253'402'300'799'999;  // the end of the year 9999

std::optional<TimeMark> parse_line(std::string_view line) {
  const size_t blank = line.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  base::Result<int64_t> at = base::parse_int(line.substr(0, blank), 0, INT64_MAX);
  base::Result<int64_t> ms = base::parse_int(line.substr(blank + 1), 0, kMostMs);
  if (!at.ok() || !ms.ok()) return std::nullopt;
  return TimeMark{static_cast<uint64_t>(*at), *ms};
}

}  // namespace

std::string times_path(const std::string& log_path) { return log_path.substr(0, log_path.size() - 3) + "times"; }

std::string time_line(TimeMark time) { return fmt::format("{} {}\n", time.at, time.ms); }

// The next whole line that is a mark. False: there is none yet.
bool LogTimes::read_mark(TimeMark& mark) {
  for (;;) {
    const size_t end = block_.find('\n', used_);
    if (end != std::string::npos) {
      const std::optional<TimeMark> read = parse_line(std::string_view(block_).substr(used_, end - used_));
      used_ = end + 1;
      if (!read || (now_ && read->at < now_->at)) continue;  // damaged
      mark = *read;
      return true;
    }
    block_.erase(0, block_.size() - used_ > kLongestLine ? block_.size() : used_);
    used_ = 0;
    const size_t had = block_.size();
    block_.resize(had + kBlock);
    const os::IoStep step = os::read_step(file_.get(), block_.data() + had, kBlock);
    block_.resize(had + (step.kind == os::IoStep::kBytes ? step.bytes : 0));
    if (step.kind != os::IoStep::kBytes) return false;
  }
}

std::optional<int64_t> LogTimes::ms_at(uint64_t offset) {
  if (!file_.valid()) return std::nullopt;
  for (;;) {
    TimeMark mark;
    if (!next_ && read_mark(mark)) next_ = mark;
    if (!next_ || next_->at > offset) break;
    now_ = next_;
    next_.reset();
  }
  if (!now_ || now_->at > offset) return std::nullopt;
  return now_->ms;
}

}  // namespace phalanx::logs
