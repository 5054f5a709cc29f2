#include "logs/line_progress.h"

#include <cmath>

#include "logs/bar_progress.h"
#include "logs/progress_bar.h"
#include "logs/step_line.h"

namespace phalanx::logs {
namespace {

constexpr size_t kMostRead = 2048;  // of many lines the last ones
constexpr double kMostSteps = 1e15;

}  // namespace

std::optional<wire::RankProgress> LineProgress::take(std::string_view lines, os::Mono now) {
  if (silent_) return std::nullopt;
  lines = lines.substr(lines.size() - std::min(lines.size(), kMostRead));
  if (read_at_ && now - *read_at_ < kPeriod) {
    held_ += lines;
    if (held_.size() > kMostRead) held_.erase(0, held_.size() - kMostRead);
    return std::nullopt;
  }
  read_at_ = now;
  held_.clear();
  return read(lines);
}

std::optional<wire::RankProgress> LineProgress::due(os::Mono now) {
  if (held_.empty() || !read_at_ || now - *read_at_ < kPeriod) return std::nullopt;
  read_at_ = now;
  return last();
}

std::optional<wire::RankProgress> LineProgress::last() {
  const std::string held = std::exchange(held_, {});
  return silent_ ? std::nullopt : read(held);
}

// The last line that has figures.
std::optional<wire::RankProgress> LineProgress::read(std::string_view lines) {
  while (!lines.empty()) {
    if (lines.back() == '\n') lines.remove_suffix(1);
    const size_t begin = lines.find_last_of('\n');
    const std::string_view line = begin == std::string_view::npos ? lines : lines.substr(begin + 1);
    lines = begin == std::string_view::npos ? std::string_view() : lines.substr(0, begin);
    std::optional<StepFigures> figures = step_figures(line);
    if (!figures) continue;
    const std::optional<Bar> bar = parse_bar(bar_);
    if (bar && loss_in(bar->postfix)) return std::nullopt;
    wire::RankProgress progress;
    progress.step = figures->step;
    progress.total = figures->total;
    progress.loss = figures->loss;
    progress.samples_per_s = figures->samples_per_s;
    if (figures->tokens_per_s) progress.tokens_per_s = *figures->tokens_per_s * (figures->per_rank ? world_ : 1);
    const bool counts = bar && bar->done && *bar->done >= 0 && *bar->done < kMostSteps;
    if (!progress.step && counts) {
      progress.step = std::llround(*bar->done);
      if (bar->total && *bar->total >= *bar->done && *bar->total < kMostSteps) progress.total = std::llround(*bar->total);
    }
    return progress;
  }
  return std::nullopt;
}

}  // namespace phalanx::logs
