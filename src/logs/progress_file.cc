#include "logs/progress_file.h"

#include <cmath>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/text.h"

namespace phalanx::logs {
namespace {

constexpr size_t kMostLines = 256;     // looked at from the end: an epoch's rows without a training loss are fewer
constexpr size_t kMostColumns = 1024;  // a row with more is none of Lightning's
constexpr size_t kMostLineBytes = 4096;
constexpr double kMostSteps = 1e15;

// The last whole line of `text`, which is cut off; none: there is no more.
std::optional<std::string_view> take_last(std::string_view& text) {
  const size_t end = text.rfind('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const size_t before = end == 0 ? std::string_view::npos : text.rfind('\n', end - 1);
  const size_t begin = before == std::string_view::npos ? 0 : before + 1;
  const std::string_view line = text.substr(begin, end - begin);
  text = text.substr(0, begin);
  return line;
}

// Cells as Python's csv module writes them: quoted where they hold commas or quotes.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"') quoted = !quoted;
    else if (c == ',' && !quoted && cells.size() < kMostColumns) cells.emplace_back();
    else if (c != '\r') cells.back() += c;
  }
  return cells;
}

std::optional<double> number_in(const std::string& cell) {
  if (cell.empty() || cell.size() > 32) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(cell.c_str(), &end);
  return *end == 0 && std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

// How well a column suits as the loss of training; none: it is another.
std::optional<int> fitness(std::string name) {
  name = base::to_lower(name);
  int per = 1;
  if (name.ends_with("_step")) per = 0, name.resize(name.size() - 5);
  else if (name.ends_with("_epoch")) per = 2, name.resize(name.size() - 6);
  if (!name.ends_with("loss")) return std::nullopt;
  for (std::string_view other : {"val", "test", "eval"})
    if (name.find(other) != std::string::npos) return std::nullopt;
  const bool plain = name == "loss" || name == "train_loss" || name == "train/loss" || name == "training_loss";
  return per * 2 + (plain ? 0 : 1);
}

}  // namespace

std::optional<wire::RankProgress> progress_in_json_lines(std::string_view tail) {
  for (size_t seen = 0; seen < kMostLines; ++seen) {
    const std::optional<std::string_view> line = take_last(tail);
    if (!line) return std::nullopt;
    if (line->size() > kMostLineBytes || !line->starts_with('{')) continue;  // or cut at its beginning
    const base::Result<base::Json> json = base::parse_json(*line, kMostLineBytes);
    if (!json.ok()) continue;
    const std::optional<int64_t> step = base::get_int(*json, "current_steps");
    const std::optional<double> loss = base::get_number(*json, "loss");
    if (!step || *step < 0 || static_cast<double>(*step) > kMostSteps || !loss || !std::isfinite(*loss)) continue;
    wire::RankProgress progress;
    progress.step = step;
    progress.loss = loss;
    if (auto total = base::get_int(*json, "total_steps"); total && *total >= *step && static_cast<double>(*total) <= kMostSteps)
      progress.total = total;
    if (auto speed = base::get_number(*json, "throughput"); speed && std::isfinite(*speed) && *speed > 0) progress.tokens_per_s = speed;
    return progress;
  }
  return std::nullopt;
}

std::optional<wire::RankProgress> progress_in_csv(std::string_view head, std::string_view tail) {
  const size_t names_end = head.substr(0, kMostProgressHead).find('\n');
  if (names_end == std::string_view::npos) return std::nullopt;
  const std::vector<std::string> names = cells_of(head.substr(0, names_end));
  std::optional<size_t> step_column, loss_column;
  std::optional<int> best;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == "step") step_column = i;
    if (const std::optional<int> fit = fitness(names[i]); fit && (!best || *fit < *best)) best = fit, loss_column = i;
  }
  if (!step_column || !loss_column) return std::nullopt;
  for (size_t seen = 0; seen < kMostLines; ++seen) {
    const std::optional<std::string_view> line = take_last(tail);
    if (!line) return std::nullopt;
    if (line->size() > kMostProgressHead) continue;
    const std::vector<std::string> cells = cells_of(*line);
    if (cells.size() != names.size()) continue;
    const std::optional<double> step = number_in(cells[*step_column]), loss = number_in(cells[*loss_column]);
    if (!step || *step < 0 || *step >= kMostSteps || !loss) continue;
    wire::RankProgress progress;
    progress.step = static_cast<int64_t>(*step) + 1;
    progress.loss = loss;
    return progress;
  }
  return std::nullopt;
}

}  // namespace phalanx::logs
