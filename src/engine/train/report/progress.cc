#include "engine/train/report/progress.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "os/files.h"
#include "wire/rank_event.h"
#include "words/said.h"

namespace phalanx::engine::train {
namespace {

using namespace std::chrono_literals;
constexpr auto kMostSilence = 30s;      // a line at least this often
constexpr auto kEventInterval = 100ms;  // an event at most this often

double seconds(std::chrono::steady_clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

int event_descriptor() {
  const std::string text = os::environment_value(wire::kEventFdVariable);
  auto number = base::parse_int(text, 0, 1 << 20);
  if (text.empty() || !number.ok()) return -1;
  const int fd = static_cast<int>(*number);
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) return -1;
  // A launcher that reads slowly must not slow the training: what does not fit is dropped.
  if (!os::set_nonblocking(fd).ok() || !os::set_cloexec(fd, true).ok()) return -1;
  std::signal(SIGPIPE, SIG_IGN);  // nor must one that is gone end it
  return fd;
}

base::Language language_here() {
  return base::choose_language(os::environment_value("PHALANX_LANG"), os::environment_value("LC_ALL"), os::environment_value("LC_MESSAGES"),
                               os::environment_value("LANG"));
}

Progress::Progress(int rank, int64_t log_every, int event_fd)
    : rank_(rank), log_every_(log_every), event_fd_(event_fd), language_(language_here()) {}

base::Status Progress::begin(const std::string& folder, int64_t step, int64_t total_steps, const RunFacts& facts) {
  total_ = total_steps;
  last_.step = std::min(step, total_steps);
  facts_ = facts;
  folder_ = folder;
  begun_ = phase_begun_ = printed_ = Clock::now();
  if (rank_ != 0) return base::ok();
  TRY_ASSIGN(log_, RunLog::open(folder, step));
  if (facts.tensorboard) { TRY_ASSIGN(board_, TensorBoard::open(folder + "/tensorboard", step)); }
  return base::ok();
}

void Progress::note(std::string_view line) {
  if (rank_ != 0) return;
  std::string text;
  for (std::string_view one : base::split_lines(line)) {
    const bool hint = one.starts_with("hint: ");
    if (hint) one.remove_prefix(6);
    text += std::string(hint ? words::Text{"hint: ##label"}.in(language_) : "") + words::said_in(language_, one) + "\n";
  }
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void Progress::phase(std::string_view name) {
  const auto now = Clock::now();
  run_.phases[phase_] += seconds(now - std::exchange(phase_begun_, now));
  phase_ = std::string(name);
  send();
}

void Progress::step(const StepReport& report) {
  last_ = report;
  means_.add(report);
  ++run_.steps;
  run_.sum += report.times;
  if (report.skipped) ++skipped_;
  const auto now = Clock::now();
  const bool due = prints(report.step) || now - printed_ > kMostSilence;
  if (due || now - sent_ > kEventInterval) {
    tokens_per_s_ = means_.tokens_per_s();
    send();
  }
  if (!due) return;
  printed_ = now;
  if (rank_ == 0) print(report);
  means_ = Means();
}

// A line of a log is worth less than the training: on a full disk it is left out, which is told once.
void Progress::keep(const base::Status& written) {
  const bool before = std::exchange(keeps_, written.ok());
  if (!before || written.ok()) return;
  note("the training continues without lines in its log");
  note(written.error().render());
}

void Progress::print(const StepReport& report) {
  const double per_step = seconds(Clock::now() - begun_) / static_cast<double>(run_.steps);  // with validations and saving
  const std::string line = terminal_line(report, means_, facts_, total_, per_step * static_cast<double>(total_ - report.step));
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
  base::Status written = log_.append(log_line(report, means_, facts_, skipped_));
  if (written.ok() && board_.is_open()) written = board_.write(report.step, scalars(report, means_, facts_));
  keep(written);
}

void Progress::validation(int64_t step, double loss) {
  if (rank_ != 0) return;
  std::string line = fmt::format("step {}/{}  validation loss {:.4f}\n", step, total_, loss);
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
  const Scalar scalar{"val/loss", loss};
  base::Status written = board_.write(step, {&scalar, 1});
  if (written.ok()) written = log_.append({{"step", step}, {"validation_loss", loss}});
  keep(written);
}

base::Status Progress::finish() {
  phase(phase_);  // counts what has passed of it
  run_.all = seconds(Clock::now() - begun_);
  const std::string text = summary(run_, facts_);
  if (!text.empty()) note(text);
  if (!log_.is_open()) return base::ok();
  TRY_ASSIGN(LossCurves curves, read_losses(log_.path()));
  curves.title = "loss of " + folder_;
  return os::write_file_atomic(folder_ + "/loss.svg", loss_picture(curves), 0644);
}

void Progress::send() {
  if (event_fd_ < 0) return;
  wire::RankProgress event;
  if (total_ > 0) {  // else the plan does not stand yet: begin() was not reached
    event.total = total_;
    event.step = last_.step;
  }
  if (tokens_per_s_ > 0) {
    event.loss = last_.loss;
    event.tokens_per_s = tokens_per_s_;
  }
  event.phase = phase_;
  const std::string line = wire::encode(event);
  sent_ = Clock::now();
  os::IoStep done = os::write_step(event_fd_, line.data(), line.size());
  if (done.kind == os::IoStep::kEnd || done.kind == os::IoStep::kError) event_fd_ = -1;  // nobody listens any more
}

}  // namespace phalanx::engine::train
