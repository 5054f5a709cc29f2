#include "logs/runs/rank_log.h"

#include <algorithm>
#include <cstdlib>

#include "logs/escape.h"

namespace phalanx::logs {

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
  const TimeMark now{buffer_.size(), os::wall_now_ns() / 1'000'000};
  if (direct) return files_.append_timed(file_, bytes, {&now, 1});
  if (times_.empty() || std::abs(now.ms - times_.back().ms) >= kTimesApartMs) times_.push_back(now);
  buffer_ += bytes;
}

void RankLog::idle() {
  for (SeenBar& seen : bars_)
    if (seen.patience > 0 && --seen.patience == 0) write_state(seen);
  write_buffer();
}

void RankLog::write_buffer() {
  if (buffer_.empty()) return;
  files_.append_timed(file_, buffer_, times_);
  buffer_.clear();
  times_.clear();
}

void RankLog::close() {
  for (SeenBar& seen : bars_) write_state(seen);
  bars_.clear();
  write_buffer();
}

}  // namespace phalanx::logs
