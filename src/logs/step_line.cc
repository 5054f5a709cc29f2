#include "logs/step_line.h"

#include <cmath>
#include <string>

#include "base/text.h"
#include "logs/progress_bar.h"

namespace phalanx::logs {
namespace {

constexpr size_t kMostBytes = 1024;
constexpr double kEpochUnits = 1e6;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<double> number_at(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && end - at < 18 && (is_digit(text[end]) || text[end] == '.')) ++end;
  if (end == at || !is_digit(text[at])) return std::nullopt;
  return std::strtod(std::string(text.substr(at, end - at)).c_str(), nullptr);
}

// The number behind a word, with nothing but ":", "=", quotes, brackets and blanks between them.
std::optional<double> behind(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if (at > 0 && is_letter(text[at - 1])) continue;
    size_t i = at + word.size();
    while (i < text.size() && i < at + word.size() + 6 && std::string_view(" :=#'\"[(").find(text[i]) != std::string_view::npos) ++i;
    if (i == at + word.size()) continue;  // "steps", "step3"
    if (std::optional<double> number = number_at(text, i)) return number;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> step_in(std::string_view line) {
  std::string text = base::to_lower(line.substr(0, kMostBytes));
  for (std::string_view word : {"step", "steps", "iteration", "iter", "iters", "it", "batch"})
    if (std::optional<double> number = behind(text, word)) return static_cast<int64_t>(*number);
  bool loss = text.find("loss") != std::string::npos;
  if (loss)
    if (std::optional<double> epoch = behind(text, "epoch")) return std::llround(*epoch * kEpochUnits);
  if (std::optional<Bar> bar = parse_bar(line.substr(0, kMostBytes)); bar && bar->done && bar->total) return std::llround(*bar->done);
  // "[  12/1000]"
  size_t open = text.find('[');
  if (open == std::string::npos) return std::nullopt;
  size_t i = open + 1;
  while (i < text.size() && text[i] == ' ') ++i;
  std::optional<double> number = number_at(text, i);
  size_t slash = text.find('/', i), close = text.find(']', i);
  if (!number || slash == std::string::npos || close == std::string::npos || slash > close || slash - i > 12) return std::nullopt;
  return static_cast<int64_t>(*number);
}

}  // namespace phalanx::logs
