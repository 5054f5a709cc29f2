#include "logs/rank_log.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "logs/escape.h"

namespace logs {

base::Result<RankLog> RankLog::open(const std::string& path, Warn warn) {
  os::Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600));
  if (!fd.valid()) return base::system_error("create", path);
  return RankLog(std::move(fd), path, std::move(warn));
}

void RankLog::lines(std::string_view bytes) {
  // A bar that ended is the first line of its chunk (line_splitter.h): its last state is that line.
  if (!bars_.empty()) {
    std::string_view first = bytes.substr(0, bytes.find('\n'));
    std::optional<Bar> bar = parse_bar(first);
    for (size_t i = 0; bar && i < bars_.size(); ++i) {
      if (!same_bar(bars_[i].bar, *bar)) continue;
      bool there = bars_[i].written && bars_[i].text == strip_escapes(first);
      bars_.erase(bars_.begin() + static_cast<ptrdiff_t>(i));
      if (there) bytes.remove_prefix(std::min(bytes.size(), first.size() + 1));
      break;
    }
  }
  put(bytes);
}

void RankLog::progress(std::string_view state, os::Mono now) {
  std::optional<Bar> bar = parse_bar(state);
  if (!bar) return lines(std::string(state) + "\n");
  SeenBar& seen = find_bar(std::move(*bar), now);
  std::string text = strip_escapes(state);
  if (text == seen.text) return;
  bool first = seen.text.empty();
  seen.text = std::move(text);
  seen.written = false;
  constexpr int kPatience = 2;
  seen.patience = seen.bar.complete() ? kPatience : 0;
  if (seen.patience > 0 || (!first && now - seen.written_at < kBarPeriod)) return;
  write_state(seen);
  seen.written_at = now;
}

RankLog::SeenBar& RankLog::find_bar(Bar bar, os::Mono now) {
  auto known = std::find_if(bars_.begin(), bars_.end(), [&](const SeenBar& seen) { return same_bar(seen.bar, bar); });
  SeenBar seen{{}, {}, false, 0, now};
  if (known != bars_.end()) {
    seen = std::move(*known);
    bars_.erase(known);
  } else if (bars_.size() == kMaxBars) {
    write_state(bars_.front());
    bars_.erase(bars_.begin());
  }
  seen.bar = std::move(bar);
  bars_.push_back(std::move(seen));
  return bars_.back();
}

void RankLog::write_state(SeenBar& seen) {
  if (seen.written || seen.text.empty()) return;
  put(seen.text + "\n");
  seen.written = true;
}

void RankLog::put(std::string_view bytes) {
  if (bytes.empty()) return;
  bool direct = bytes.size() > kBufferBytes / 2;
  if (direct || buffer_.size() + bytes.size() > kBufferBytes) write_buffer();
  if (direct) write_out(bytes);
  else buffer_ += bytes;
}

void RankLog::idle() {
  for (SeenBar& seen : bars_)
    if (seen.patience > 0 && --seen.patience == 0) write_state(seen);
  write_buffer();
}

void RankLog::write_buffer() {
  if (buffer_.empty()) return;
  write_out(buffer_);
  buffer_.clear();
}

void RankLog::close() {
  for (SeenBar& seen : bars_) write_state(seen);
  bars_.clear();
  write_buffer();
  if (lost_unsaid_ > 0) resume();
  fd_.reset();
}

// After a failure: says in the log what is missing. False while writing still fails.
bool RankLog::resume() {
  std::string note = fmt::format("{}[phalanx: {} of this log were lost here: {}]\n", line_open_ ? "\n" : "",
                                 base::format_bytes(lost_unsaid_), std::strerror(last_error_));
  os::IoStep step = os::write_step(fd_.get(), note.data(), note.size());
  if (step.kind != os::IoStep::kBytes) return false;
  line_open_ = step.bytes < note.size();
  if (line_open_) return false;
  lost_unsaid_ = 0;
  return true;
}

void RankLog::write_out(std::string_view bytes) {
  if (!fd_.valid()) return;
  if (lost_unsaid_ > 0 && !resume()) return failed(last_error_, bytes);
  while (!bytes.empty()) {
    os::IoStep step = os::write_step(fd_.get(), bytes.data(), bytes.size());
    if (step.kind != os::IoStep::kBytes || step.bytes == 0) return failed(step.kind == os::IoStep::kError ? step.error_number : EIO, bytes);
    line_open_ = bytes[step.bytes - 1] != '\n';
    bytes.remove_prefix(step.bytes);
  }
}

void RankLog::failed(int error_number, std::string_view unwritten) {
  last_error_ = error_number;
  lost_bytes_ += unwritten.size();
  lost_unsaid_ += unwritten.size();
  if (warned_) return;
  warned_ = true;
  if (warn_) warn_(fmt::format("{} is incomplete from here on: {}", path_, std::strerror(error_number)));
}

}  // namespace logs
