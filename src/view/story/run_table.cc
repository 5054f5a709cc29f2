#include "view/story/run_table.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/name_ranges.h"
#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::view {
namespace {

using words::Text;
using words::tr;

constexpr size_t kColumns = 11, kName = 1, kOwner = 2, kSpeed = 9;
constexpr size_t kMostHostColumns = 28;
using Line = std::array<std::string, kColumns>;

constexpr std::array<Text, kColumns> kHeads = {Text{"RUN"},   Text{"NAME"}, Text{"OWNER"}, Text{"STATE"}, Text{"HOSTS"},  Text{"RANKS"},
                                               Text{"SINCE"}, Text{"STEP"}, Text{"LOSS"},  Text{"SPEED"}, Text{"COMMAND"}};

// "12 min", "3 h 5 min ago"
std::string age(const RunRow& row, base::Language language) {
  if (!row.age_s) return "-";
  std::string text = base::format_duration(std::chrono::seconds(*row.age_s));
  if (!row.ended) return text;
  return tr(language, "{} ago", text);
}

std::string hosts_of(const RunRow& row) {
  std::string text = base::printable(base::join(base::fold_names(row.hosts), ","));
  if (base::display_width(text) <= kMostHostColumns) return text;
  return fmt::format("{} (+{})", base::printable(row.hosts.front(), 16), row.hosts.size() - 1);
}

}  // namespace

std::string run_table(const std::vector<RunRow>& rows, base::Language language, size_t columns) {
  std::vector<Line> lines(1);
  for (size_t c = 0; c < kColumns; ++c) lines[0][c] = kHeads[c].in(language);
  for (const RunRow& row : rows)
    lines.push_back({row.id, row.name.empty() ? "-" : base::printable(row.name), row.owner.empty() ? "-" : base::printable(row.owner),
                     std::string(row.state.in(language)), row.hosts.empty() ? "-" : hosts_of(row),
                     row.ranks > 0 ? std::to_string(row.ranks) : "-", age(row, language), row.step.empty() ? "-" : row.step,
                     row.loss.empty() ? "-" : row.loss, row.speed.empty() ? "-" : row.speed, base::printable(row.command, 4096)});
  std::array<size_t, kColumns> widths{};
  for (const Line& line : lines)
    for (size_t c = 0; c < kColumns; ++c) widths[c] = std::max(widths[c], base::display_width(line[c]));
  const bool owners = std::any_of(rows.begin(), rows.end(), [](const RunRow& row) { return !row.owner.empty(); });
  const bool names = std::any_of(rows.begin(), rows.end(), [](const RunRow& row) { return !row.name.empty(); });
  const bool speeds = std::any_of(rows.begin(), rows.end(), [](const RunRow& row) { return !row.speed.empty(); });
  auto shown = [&](size_t c) { return (c != kOwner || owners) && (c != kName || names) && (c != kSpeed || speeds); };
  std::string out;
  for (const Line& line : lines) {
    std::string text;
    for (size_t c = 0; c + 1 < kColumns; ++c)
      if (shown(c)) text += base::pad_right(line[c], widths[c]) + "  ";
    text += line[kColumns - 1];
    out += std::string(columns > 0 ? base::fit_columns(text, columns) : std::string_view(text)) + "\n";
  }
  return out;
}

}  // namespace phalanx::view
