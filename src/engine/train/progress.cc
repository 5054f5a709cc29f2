#include "engine/train/progress.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "base/text.h"
#include "os/files.h"
#include "wire/rank_event.h"

namespace engine::train {
namespace {

using namespace std::chrono_literals;
constexpr auto kMostSilence = 30s;      // a line at least this often
constexpr auto kEventInterval = 100ms;  // an event at most this often
constexpr size_t kMaxLogBytes = 1 << 30;

std::string short_number(double value) {
  if (value >= 1e6) return fmt::format("{:.2f}M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.1f}k", value / 1e3);
  return fmt::format("{:.0f}", value);
}

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

Progress::Progress(int rank, int64_t log_every, int event_fd) : rank_(rank), log_every_(log_every), event_fd_(event_fd) {}

base::Status Progress::begin(const std::string& folder, int64_t step, int64_t total_steps) {
  total_ = total_steps;
  if (rank_ != 0) return base::ok();
  TRY(os::make_folders(folder, 0755));
  log_path_ = folder + "/log.jsonl";
  // Lines of steps that the resumed checkpoint has not seen will be written again.
  std::string kept;
  if (step > 0 && os::exists(log_path_)) {
    TRY_ASSIGN(std::string old, os::read_file(log_path_, kMaxLogBytes));
    for (std::string_view line : base::split_lines(old)) {
      auto json = base::parse_json(line, 1 << 16);
      if (json.ok() && base::get_int(*json, "step").value_or(step + 1) <= step) kept += std::string(line) + "\n";
    }
  }
  TRY(os::write_file_atomic(log_path_, kept, 0644));
  log_ = os::Fd(open(log_path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!log_.valid()) return base::system_error("open", log_path_);
  return base::ok();
}

void Progress::note(std::string_view line) {
  if (rank_ != 0) return;
  std::fwrite(line.data(), 1, line.size(), stderr);
  if (!line.ends_with('\n')) std::fputc('\n', stderr);
}

void Progress::phase(std::string_view name) {
  phase_ = name;
  send();
}

base::Status Progress::step(const StepReport& report) {
  last_ = report;
  tokens_ += static_cast<double>(report.targets);
  seconds_ += report.times.all();
  if (seconds_ > 0) tokens_per_s_ = tokens_ / seconds_;
  const auto now = Clock::now();
  const bool due = report.step % log_every_ == 0 || report.step == total_ || now - printed_ > kMostSilence;
  if (due || now - sent_ > kEventInterval) send();
  if (due) tokens_ = seconds_ = 0;
  if (!due || rank_ != 0) return base::ok();
  printed_ = now;
  std::string line = fmt::format("step {}/{}  loss {:.4f}  lr {:.2e}  norm {:.2f}  {} tokens/s\n", report.step, total_, report.loss,
                                 report.lr, report.grad_norm, short_number(tokens_per_s_));
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
  return append(
      {{"step", report.step}, {"loss", report.loss}, {"lr", report.lr}, {"grad_norm", report.grad_norm}, {"tokens_per_s", tokens_per_s_}});
}

base::Status Progress::validation(int64_t step, double loss) {
  if (rank_ != 0) return base::ok();
  std::string line = fmt::format("step {}/{}  validation loss {:.4f}\n", step, total_, loss);
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
  return append({{"step", step}, {"validation_loss", loss}});
}

void Progress::send() {
  if (event_fd_ < 0) return;
  wire::RankProgress event;
  event.total = total_;
  event.step = last_.step;
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

base::Status Progress::append(const base::Json& line) {
  if (!log_.valid()) return base::ok();
  return os::write_all(log_.get(), base::to_text(line) + "\n", log_path_);
}

}  // namespace engine::train
