#include "logs/bar_progress.h"

#include <cmath>
#include <cstdlib>
#include <string>

#include "base/text.h"

namespace phalanx::logs {
namespace {
constexpr double kMostSteps = 1e15;  // beyond it a double does not count
constexpr size_t kMostDigits = 32;
}  // namespace

std::optional<double> loss_in(std::string_view postfix) {
  std::string lower = base::to_lower(postfix);
  for (size_t at = lower.find("loss"); at != std::string::npos; at = lower.find("loss", at + 4)) {
    size_t i = at + 4;
    while (i < lower.size() && (lower[i] == ' ' || lower[i] == '\'' || lower[i] == '"')) ++i;
    if (i == lower.size() || (lower[i] != '=' && lower[i] != ':')) continue;
    std::string number = lower.substr(i + 1, kMostDigits);
    char* end = nullptr;
    double value = std::strtod(number.c_str(), &end);
    if (end != number.c_str() && std::isfinite(value)) return value;
  }
  return std::nullopt;
}

std::string_view last_state(std::string_view bar, std::string_view lines) {
  if (bar.empty()) return "";
  std::string_view first = lines.substr(0, lines.find('\n'));
  std::optional<Bar> before = parse_bar(bar), after = parse_bar(first);
  return before && after && same_bar(*before, *after) ? first : "";
}

std::optional<wire::RankProgress> BarProgress::take(const Bar& bar, os::Mono now) {
  std::optional<double> loss = loss_in(bar.postfix);
  if (!loss || !bar.done || *bar.done < 0 || *bar.done > kMostSteps) return std::nullopt;
  if (*bar.done < done_) before_ += done_;
  done_ = *bar.done;
  if (given_at_ && now - *given_at_ < kPeriod && !bar.complete()) return std::nullopt;
  given_at_ = now;
  if (before_ + done_ > kMostSteps) return std::nullopt;
  wire::RankProgress progress;
  progress.step = static_cast<int64_t>(before_ + done_);
  if (bar.total && before_ == 0 && *bar.total >= done_ && *bar.total < kMostSteps) progress.total = static_cast<int64_t>(*bar.total);
  progress.loss = loss;
  return progress;
}

}  // namespace phalanx::logs
