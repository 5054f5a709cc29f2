#include "view/terminal/terminal.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "base/unicode.h"
#include "view/phrases.h"

namespace phalanx::view {
namespace {

using std::chrono::milliseconds;

constexpr size_t kBatchBytes = 64 << 10;  // written without waiting for more
constexpr size_t kLineColumns = 200;      // of a progress line, which is not bound to a window
constexpr const char* kEraseLine = "\r\x1b[K";
constexpr const char* kReset = "\x1b[0m";
constexpr const char* kFoldColour = "\x1b[2m";

}  // namespace

View::View(os::Loop& loop, const TerminalCapabilities& surroundings, const Speech& speech, ViewOptions options)
    : loop_(loop), around_(surroundings), speech_(speech), options_(options) {
  out_owner_ = std::make_unique<Output>(loop, surroundings.out);
  if (!surroundings.same) err_owner_ = std::make_unique<Output>(loop, surroundings.err);
  out_ = out_owner_.get();
  err_ = err_owner_ ? err_owner_.get() : out_;
  if (options_.live) {
    out_->decouple();
    if (err_ != out_) err_->decouple();
    out_->on_room([this] { say_dropped(*out_, out_dropped_); });
    if (err_ != out_) err_->on_room([this] { say_dropped(*err_, err_dropped_); });
  }
  bar_wanted_ = around_.err_terminal && around_.cursor && options.bar && !options.quiet;
  fold_ = options.fold == Choice::kOn || (options.fold == Choice::kAuto && around_.out_terminal);
}

View::~View() {
  loop_.cancel(flush_timer_);
  loop_.cancel(fold_timer_);
  loop_.cancel(beat_timer_);
}

void View::set_ranks(const std::vector<std::string>& host_of_rank) {
  if (folder_) folder_->flush(*this);  // of an attempt before this one
  prefixes_[0].clear();
  prefixes_[1].clear();
  size_t host_number = 0;
  for (size_t i = 0; i < host_of_rank.size(); ++i) {
    if (i > 0 && host_of_rank[i] != host_of_rank[i - 1]) ++host_number;
    for (wire::Stream stream : {wire::Stream::kStdout, wire::Stream::kStderr})
      prefixes_[stream == wire::Stream::kStderr].push_back(rank_prefix(host_of_rank[i], static_cast<int>(i), host_number, stream));
  }
  int ranks = static_cast<int>(host_of_rank.size());
  run_bar_ = RunBar(ranks);
  folder_.emplace(fold_ ? ranks : 1);
  heard_at_ = shown_at_ = progress_said_at_ = os::mono_now();
  if (!beat_timer_) beat_timer_ = loop_.every(kBeat, [this] { beat(); });
}

std::string View::rank_prefix(const std::string& host, int rank, size_t host_number, wire::Stream stream) const {
  if (!options_.prefix) return "";
  bool err = stream == wire::Stream::kStderr;
  bool colour = err ? around_.err_colour : around_.out_colour;
  bool mark = err && around_.err_terminal;
  return view::rank_prefix(host, rank, host_number, colour, mark);
}

void View::hear() {
  heard_at_ = os::mono_now();
  heard_ = true;
}

void View::line(int rank, wire::Stream stream, std::string_view lines) {
  if (!is_rank(rank) || lines.empty()) return;
  hear();
  const bool to_err = &output_for(stream) == err_ && err_ != out_;
  uint64_t& dropped = to_err ? err_dropped_ : out_dropped_;
  if (drops(output_for(stream), dropped)) {
    dropped += static_cast<uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
    return;
  }
  if (run_bar_.has_bar(rank)) {
    size_t first = std::min(lines.find('\n'), lines.size() - 1) + 1;
    // A bar that ended is the first line of its chunk. Where one bar stands for all, so does its last line.
    if (run_bar_.ends_bar(rank, lines.substr(0, first)) == RunBar::End::kSpokenFor && fold_) lines.remove_prefix(first);
    bar_dirty_ = true;
    if (lines.empty()) return;
  }
  folder_->lines(rank, stream, lines, heard_at_, *this);
  if (fold_) arm_fold_timer();
}

void View::pass(int rank, wire::Stream stream, std::string_view lines) {
  dress(stream, prefixes_[stream == wire::Stream::kStderr][static_cast<size_t>(rank)], lines);
}

void View::folded(wire::Stream stream, std::string_view line, std::span<const int> ranks, size_t times) {
  if (ranks.size() == 1 && times == 1) return pass(ranks[0], stream, line);  // held in vain
  bool colour = stream == wire::Stream::kStderr ? around_.err_colour : around_.out_colour;
  std::string numbers = base::format_ranges(ranks);
  if (!around_.utf8) numbers = base::replace_all(numbers, "–", "-");
  std::string head = speech_(kTimesPhrase, fmt::format("{}{}", around_.utf8 ? "×" : "x", times), numbers);
  std::string prefix = options_.prefix ? "[" + head + "] " : "(" + head + ") ";
  if (colour) prefix = kFoldColour + prefix + kReset;
  dress(stream, prefix, line);
}

void View::dress(wire::Stream stream, std::string_view prefix, std::string_view lines) {
  bool err = stream == wire::Stream::kStderr;
  Output& output = output_for(stream);
  if (output.closed()) return;
  before_text(output);
  Controls controls{err ? around_.err_colour : around_.out_colour, err ? around_.err_terminal : around_.out_terminal, around_.utf8};
  append_prefixed(output.buffer(), prefix, lines, controls);
  schedule();
}

void View::bar(int rank, std::string_view state) {
  std::optional<logs::Bar> bar = logs::parse_bar(state);
  if (!is_rank(rank) || !bar) return;
  hear();
  run_bar_.bar(rank, std::move(*bar));
  bar_dirty_ = progress_unsaid_ = true;
  if (bar_wanted_) schedule();
}

void View::progress(int rank, const wire::RankProgress& progress) {
  if (!is_rank(rank)) return;
  hear();
  run_bar_.progress(rank, progress, heard_at_);
  bar_dirty_ = progress_unsaid_ = true;
  if (bar_wanted_) schedule();
}

void View::shown_progress(int rank, const wire::RankProgress& progress) {
  const bool unsaid = progress_unsaid_;
  this->progress(rank, progress);
  progress_unsaid_ = unsaid;
}

void View::say(std::string_view text) {
  if (options_.quiet) return;
  if (options_.live && err_->pending() > err_->bound() + kTalkBytes) ++(err_ == out_ ? out_dropped_ : err_dropped_);
  else talk(text);
}

// Once lines are dropped, they are until half of the bound is free: what is missing is missing in one piece.
bool View::drops(const Output& output, uint64_t& dropped) {
  if (!options_.live) return false;
  if (dropped > 0 ? output.pending() > output.bound() / 2 : !output.wants_more()) return true;
  say_dropped(output, dropped);
  return false;
}

void View::say_dropped(const Output& output, uint64_t& dropped) {
  if (dropped == 0 || output.closed()) return;
  talk("phalanx: " + speech_(kDroppedPhrase, std::exchange(dropped, 0)));
}

void View::say_error(std::string_view text) { talk(text); }

void View::talk(std::string_view text) {
  before_text(*err_);
  std::string& buffer = err_->buffer();
  buffer += base::printable_lines(text);
  if (!text.ends_with('\n')) buffer += '\n';
  schedule();
}

// The bar goes before text takes its place; it comes back with the next flush.
void View::before_text(Output& output) {
  if (drawn_.empty() || &output != err_) return;
  err_->buffer() += kEraseLine;
  drawn_.clear();
}

void View::schedule() {
  size_t most = std::max(out_->buffer().size(), err_->buffer().size());
  if (most >= kBatchBytes) return flush();
  if (flush_timer_) return;
  // With a bar to redraw, lines of a few milliseconds are shown together.
  os::nanoseconds delay{0};
  if (bar_wanted_ && run_bar_.known()) delay = std::max(delay, flushed_at_ + kRedraw - os::mono_now());
  flush_timer_ = loop_.after(delay, [this] {
    flush_timer_ = 0;
    flush();
  });
}

void View::flush() {
  flushed_at_ = os::mono_now();
  bool text = !out_->buffer().empty() || !err_->buffer().empty();
  if (text) shown_at_ = flushed_at_;
  if (out_ != err_) out_->pump();
  if (bar_wanted_) draw_bar();
  err_->pump();
  tell_failure(*out_, "stdout", out_told_);
  if (out_ != err_) tell_failure(*err_, "stderr", err_told_);
}

std::string View::bar_text() const {
  size_t columns = terminal_columns(around_.err);
  return run_bar_.text(columns > 1 ? columns - 1 : 1, around_.utf8, true, speech_);
}

// Draws when there is something new, and not more often than kRedraw; a reader that does not keep up gets none.
void View::draw_bar() {
  bool stale = bar_dirty_ || drawn_.empty();
  if (!stale || !beat_timer_) return;
  if (flushed_at_ - drawn_at_ < kRedraw || err_->pending() > err_->buffer().size()) return;
  std::string text = bar_text();
  bar_dirty_ = false;
  if (text == drawn_) return;
  err_->buffer() += text.empty() ? kEraseLine : "\r" + text + "\x1b[K";
  drawn_ = std::move(text);
  drawn_at_ = flushed_at_;
}

void View::arm_fold_timer() {
  std::optional<os::Mono> due = folder_->due();
  if (fold_timer_ || !due) return;
  fold_timer_ = loop_.after(std::max(os::nanoseconds(0), *due - os::mono_now()), [this] {
    fold_timer_ = 0;
    folder_->tick(os::mono_now(), *this);
    arm_fold_timer();
  });
}

void View::beat() {
  if (bar_wanted_) {
    bar_dirty_ = bar_dirty_ || !drawn_.empty();  // the window may have another size now
    if (bar_dirty_ || run_bar_.known()) schedule();
  }
  if (!options_.quiet) say_progress(os::mono_now());
}

void View::say_progress(os::Mono now) {
  if (!bar_wanted_ && progress_unsaid_ && now - progress_said_at_ >= options_.progress_line) {
    std::string text = run_bar_.text(kLineColumns, around_.utf8, false, speech_);
    progress_said_at_ = now;
    progress_unsaid_ = false;
    if (!text.empty()) talk("phalanx: " + text);
  } else if (!heard_ && options_.first_silence.count() > 0 && now - heard_at_ >= options_.first_silence) {
    heard_ = true;
    talk("phalanx: " + speech_(kNoOutputPhrase, prefixes_[0].size()));
  } else if (now - shown_at_ >= options_.silence && now - heard_at_ >= options_.silence) {
    auto silent = std::chrono::duration<double>(now - heard_at_).count();
    talk("phalanx: " + speech_(kSilentPhrase, prefixes_[0].size(), format_clock(silent)));
  }
}

void View::tell_failure(const Output& output, std::string_view name, bool& told) {
  if (told || output.error_number() == 0) return;
  told = true;
  if (!options_.quiet) talk("phalanx: " + speech_(kOutputFailedPhrase, name, std::strerror(output.error_number())));
}

void View::on_room(std::function<void()> callback) {
  auto both = [this, callback = std::move(callback)] {
    if (wants_more()) callback();
  };
  out_->on_room(both);
  if (out_ != err_) err_->on_room(both);
}

bool View::finish(milliseconds most) {
  const os::Mono end = os::mono_now() + most;
  if (folder_) folder_->flush(*this);
  say_dropped(*out_, out_dropped_);
  say_dropped(*err_, err_dropped_);
  loop_.cancel(fold_timer_);
  loop_.cancel(beat_timer_);
  fold_timer_ = beat_timer_ = 0;
  if (!drawn_.empty() && run_bar_.from_events()) {  // the last figures stay to be read; a rank's own bar ends in its own line
    err_->buffer() += "\r" + bar_text() + "\x1b[K\n";
    drawn_.clear();
  } else if (!options_.quiet && !bar_wanted_ && progress_unsaid_ && run_bar_.from_events()) {
    talk("phalanx: " + run_bar_.text(kLineColumns, around_.utf8, false, speech_));
    progress_unsaid_ = false;  // finish() is called again when more was said
  }
  before_text(*err_);
  loop_.cancel(flush_timer_);
  flush_timer_ = 0;
  flush();
  auto left = [&] { return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(end - os::mono_now())); };
  bool taken = out_->drain(left());
  if (out_ != err_) taken = err_->drain(left()) && taken;
  return taken;
}

}  // namespace phalanx::view
