#include "engine/finetune/bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "engine/train/report/metrics.h"
#include "engine/train/report/progress.h"
#include "os/files.h"
#include "wire/rank_event.h"
#include "words/said.h"

namespace phalanx::engine::finetune {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::milliseconds kRedraw = 100ms, kSilence = 10s, kEventInterval = 100ms;
constexpr size_t kWidth = 24;  // characters of the bar

double seconds(std::chrono::steady_clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

Bar::Bar(bool speaks, int event_fd) : speaks_(speaks), terminal_(isatty(STDERR_FILENO) == 1), event_fd_(event_fd) {}

void Bar::start(words::Text what, std::string_view phase, Unit unit, uint64_t total, uint64_t done) {
  end();
  what_ = what.in(train::language_here());
  phase_ = phase;
  unit_ = unit;
  total_ = total;
  done_ = first_ = done;
  loss_ = tokens_per_s_ = 0;
  open_ = true;
  begun_ = shown_ = Clock::now();
  send();
}

void Bar::advance(uint64_t done) {
  done_ = done;
  const auto now = Clock::now();
  if (now - sent_ > kEventInterval) send();
  if (now - shown_ > (terminal_ ? kRedraw : kSilence)) draw();
}

void Bar::advance(uint64_t done, uint64_t total) {
  total_ = total;
  advance(done);
}

void Bar::training(uint64_t done, double loss, double tokens_per_s) {
  loss_ = loss;
  tokens_per_s_ = tokens_per_s;
  advance(done);
}

double Bar::eta_s() const {
  if (done_ <= first_ || total_ <= done_) return 0;
  return seconds(Clock::now() - begun_) / static_cast<double>(done_ - first_) * static_cast<double>(total_ - done_);
}

void Bar::draw() {
  if (!speaks_ || !open_) return;
  shown_ = Clock::now();
  const double share = total_ == 0 ? 1 : std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
  std::string line = what_ + " ";
  if (terminal_) {
    const auto full = static_cast<size_t>(share * static_cast<double>(kWidth));
    line += fmt::format("[{}{}] ", std::string(full, '='), std::string(kWidth - full, ' '));
  }
  line += fmt::format("{:.0f} %", 100 * share);
  if (unit_ == Unit::kBytes) line += fmt::format("  {} / {}", base::format_bytes(done_), base::format_bytes(total_));
  else if (unit_ == Unit::kParts) line += fmt::format("  {}/{}", done_, total_);
  else line += fmt::format("  {}/{}  loss {:.4f}  {:.0f} tokens/s", done_, total_, loss_, tokens_per_s_);
  if (const double left = eta_s(); left > 0) line += "  eta " + train::short_duration(left);
  std::fprintf(stderr, terminal_ ? "\r%s\x1b[K" : "%s\n", line.c_str());
  drawn_ = terminal_;
}

void Bar::clear() {
  if (drawn_) std::fprintf(stderr, "\r\x1b[K");
  drawn_ = false;
}

void Bar::end() {
  clear();
  open_ = false;
}

void Bar::finish() {
  end();
  phase_ = "done";
  send();
}

void Bar::note(std::string_view line) {
  if (!speaks_) return;
  clear();
  std::fprintf(stderr, "%s\n", words::said_in(train::language_here(), line).c_str());
}

void Bar::note(const words::Message& line) {
  if (!speaks_) return;
  clear();
  std::fprintf(stderr, "%s\n", line.in(train::language_here()).c_str());
}

void Bar::printed(std::string_view line) {
  if (!speaks_) return;
  clear();
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

void Bar::send() {
  if (event_fd_ < 0) return;
  wire::RankProgress event;
  event.phase = phase_;
  if (unit_ == Unit::kSteps) {
    event.step = static_cast<int64_t>(done_);
    event.total = static_cast<int64_t>(total_);
    if (tokens_per_s_ > 0) {
      event.loss = loss_;
      event.tokens_per_s = tokens_per_s_;
    }
  }
  const std::string line = wire::encode(event);
  sent_ = Clock::now();
  const os::IoStep done = os::write_step(event_fd_, line.data(), line.size());
  if (done.kind == os::IoStep::kEnd || done.kind == os::IoStep::kError) event_fd_ = -1;  // nobody listens any more
}

}  // namespace phalanx::engine::finetune
