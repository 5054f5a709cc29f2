#include "logs/line_splitter.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "logs/escape.h"

namespace phalanx::logs {
namespace {

// Bytes at the end of `text` that begin a UTF-8 sequence and do not finish it: 0 to 3.
size_t unfinished_character(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    unsigned char c = static_cast<unsigned char>(text[text.size() - back]);
    if ((c & 0xc0) == 0x80) continue;
    size_t length = c >= 0xf0 && c <= 0xf4 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;
    return c < 0xf5 && length > back ? back : 0;
  }
  return 0;
}

bool is_invisible(std::string_view segment) { return base::trim(strip_escapes(segment)).empty(); }

}  // namespace

void LineSplitter::feed(std::string_view bytes, const Sink& sink) {
  sink_ = &sink;
  fed_ += bytes.size();
  while (!bytes.empty()) {
    std::string_view part = bytes.substr(0, kMaxLineBytes);
    bytes.remove_prefix(part.size());
    if (plain() && !std::memchr(part.data(), '\r', part.size())) feed_plain(part);
    else feed_segments(part);
  }
  give_state();
}

// No "\r" anywhere: the first line completes the tail, the rest goes out as it came in.
void LineSplitter::feed_plain(std::string_view bytes) {
  const void* found = ::memrchr(bytes.data(), '\n', bytes.size());
  if (!found) return append_tail(bytes);
  size_t last = static_cast<size_t>(static_cast<const char*>(found) - bytes.data());
  std::string_view rest = bytes.substr(last + 1);
  std::string_view lines = bytes.substr(0, last + 1);
  if (!tail_.empty() || cut_open_) {
    size_t first = lines.find('\n');
    append_tail(lines.substr(0, first));
    put_line(tail_, false);
    tail_.clear();
    lines.remove_prefix(first + 1);
    give_lines();
  }
  if (!lines.empty()) (*sink_)({wire::OutputKind::kLines, false, lines});
  append_tail(rest);
}

void LineSplitter::feed_segments(std::string_view bytes) {
  while (!bytes.empty()) {
    if (pending_cr_) {
      pending_cr_ = false;
      if (bytes[0] == '\n') {
        bytes.remove_prefix(1);
        end_line();
        continue;
      }
      end_segment();
    }
    size_t end = 0;
    while (end < bytes.size() && bytes[end] != '\n' && bytes[end] != '\r') ++end;
    append_tail(bytes.substr(0, end));
    if (end == bytes.size()) break;
    if (bytes[end] == '\n') end_line();
    else pending_cr_ = true;
    bytes.remove_prefix(end + 1);
  }
  give_lines();
}

void LineSplitter::append_tail(std::string_view bytes) {
  if (bytes.empty()) return;
  tail_given_ = false;
  while (tail_.size() + bytes.size() > kMaxLineBytes) {
    size_t room = kMaxLineBytes - tail_.size();
    tail_ += bytes.substr(0, room);
    bytes.remove_prefix(room);
    cut_tail();
  }
  tail_ += bytes;
}

// Gives the tail out as a piece ended by us; what may be half a character stays.
void LineSplitter::cut_tail() {
  size_t keep = unfinished_character(tail_);
  if (keep == tail_.size()) keep = 0;
  settle_upper();
  put_line(std::string_view(tail_).substr(0, tail_.size() - keep), true);
  tail_.erase(0, tail_.size() - keep);
  cut_open_ = true;
}

// A "\n" (or "\r\n") ended tail_.
void LineSplitter::end_line() {
  std::string_view segment = tail_;
  bool redrawn = after_cr_;
  after_cr_ = false;
  if (size_t ups = redrawn ? take_cursor_ups(segment) : 0) {  // drawn below and gone up again; this "\n" only goes down
    std::optional<Bar> bar = parse_bar(segment);
    if (bar || is_invisible(segment)) {
      if (bar && !tail_given_) put_state(segment, std::move(*bar));
      below_ -= std::min(below_, ups);
      ++below_;
      cut_open_ = false;
      tail_.clear();
      return;
    }
    segment = tail_;
  }
  if (below_ > 0 && segment.empty() && !redrawn) {  // further down
    ++below_;
    return;
  }
  settle_upper();
  bool already_given = redrawn && !segment.empty() && segment == last_overwritten_;
  last_overwritten_.clear();
  std::optional<Bar> bar = redrawn ? parse_bar(segment) : std::nullopt;
  if (bar && !bar->complete()) {
    upper_ = segment;
    below_ = 1;
    cut_open_ = false;
    if (!tail_given_) put_state(segment, std::move(*bar));
  } else if (bar) {
    put_bar_line(segment, false);
  } else if (!already_given) {
    put_line(segment, false);
  }
  tail_.clear();
}

// A bare "\r" ended tail_.
void LineSplitter::end_segment() {
  std::string_view segment = tail_;
  after_cr_ = true;
  size_t ups = take_cursor_ups(segment);
  std::optional<Bar> bar = parse_bar(segment);
  bool invisible = !bar && is_invisible(segment);
  if (ups > 0 && (bar || invisible)) {
    below_ -= std::min(below_, ups);  // back at the upper bar, which is about to be overwritten
    if (below_ == 0) upper_.clear();
  } else if (!invisible) {
    settle_upper();
  }
  if (bar) {
    if (!tail_given_) put_state(segment, std::move(*bar));
  } else if (!invisible && tail_ != last_overwritten_) {
    put_line(tail_, false);
    last_overwritten_ = tail_;
  }
  tail_.clear();
}

// The bar above turned out to be a line: its "\n" and those after it were ends of lines.
void LineSplitter::settle_upper() {
  if (below_ == 0) return;
  if (!upper_.empty()) {
    put_bar_line(upper_, false);
    lines_.append(below_ - 1, '\n');
  }
  upper_.clear();
  below_ = 0;
}

void LineSplitter::put_line(std::string_view line, bool cut) {
  bool there = cut_open_ && line.empty();  // the "\n" after a piece that we ended
  cut_open_ = false;
  if (there) return;
  if (cut || lines_.size() + line.size() >= kMaxLineBytes) give_lines();
  lines_ += line;
  lines_ += '\n';
  if (!cut) return;
  (*sink_)({wire::OutputKind::kLines, true, lines_});
  lines_.clear();
}

void LineSplitter::put_bar_line(std::string_view line, bool cut) {
  give_state();
  put_line(line, cut);
}

void LineSplitter::put_state(std::string_view state, Bar bar) {
  if (state_bar_ && !same_bar(*state_bar_, bar)) give_state();
  state_ = state;
  state_bar_ = std::move(bar);
}

void LineSplitter::give_lines() {
  if (lines_.empty()) return;
  (*sink_)({wire::OutputKind::kLines, false, lines_});
  lines_.clear();
}

void LineSplitter::give_state() {
  give_lines();
  if (state_bar_) (*sink_)({wire::OutputKind::kProgress, false, state_});
  state_bar_.reset();
}

// What people write when they wait for an answer or say what they are doing: "Password: ", "[y/N] ", "(Pdb) ", "Loading...".
// A program that writes whole blocks (stdio into a pipe) stops at a multiple of the block: that is no prompt.
bool LineSplitter::tail_is_prompt() const {
  constexpr uint64_t kBlockBytes = 4096;
  if (tail_.size() > kMaxPromptBytes || fed_ % kBlockBytes == 0) return false;
  std::string plain = strip_escapes(tail_);
  std::string_view text = base::trim(plain);
  if (text.empty()) return false;
  return std::string_view(":?>])$#").find(text.back()) != std::string_view::npos || text.ends_with("...") || text.ends_with("…") ||
         text.ends_with("：") || text.ends_with("？");
}

void LineSplitter::flush_stale(const Sink& sink) {
  sink_ = &sink;
  quiet_flushes_ = fed_ == fed_at_last_flush_ ? quiet_flushes_ + 1 : 0;
  fed_at_last_flush_ = fed_;
  if (quiet_flushes_ == 0) return;
  if (tail_.empty()) {
    settle_upper();
    return give_state();
  }
  std::string_view segment = tail_;
  take_cursor_ups(segment);
  if (std::optional<Bar> bar = parse_bar(segment)) {
    if (!tail_given_) put_state(segment, std::move(*bar));
    tail_given_ = true;
  } else if (quiet_flushes_ >= kPromptPatience && tail_is_prompt()) {
    cut_tail();
  }
  give_state();
}

void LineSplitter::finish(const Sink& sink) {
  sink_ = &sink;
  pending_cr_ = false;
  std::string_view segment = tail_;
  if (after_cr_) take_cursor_ups(segment);
  settle_upper();
  if (after_cr_ && !is_invisible(segment)) put_bar_line(segment, true);
  else if (!after_cr_ && !tail_.empty()) put_line(tail_, true);
  tail_.clear();
  after_cr_ = cut_open_ = tail_given_ = false;
  last_overwritten_.clear();
  give_state();
}

}  // namespace phalanx::logs
