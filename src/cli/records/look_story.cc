#include "cli/records/look_story.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "words/message.h"

namespace phalanx::cli {
namespace {

using base::Json;
using words::tr;

constexpr size_t kMostLines = 16;
constexpr int64_t kWorthSaying = 10;  // seconds without movement
constexpr int64_t kMostRanks = 1 << 20;

struct Alike {
  std::vector<int> ranks;
  int64_t least_step = -1, most_step = -1;
};

}  // namespace

std::vector<std::string> look_lines(const Json& look, base::Language language) {
  std::vector<std::string> lines;
  std::map<std::string, Alike> alike;
  std::vector<int> waiting, others;
  auto ranks = look.is_object() ? look.find("ranks") : look.end();
  if (!look.is_object() || ranks == look.end() || !ranks->is_array()) return lines;
  for (const Json& rank : *ranks) {
    if (!rank.is_object()) continue;
    int64_t number = base::get_int(rank, "rank").value_or(-1);
    if (number < 0 || number > kMostRanks) continue;
    std::string place = base::get_string(rank, "place").value_or("");
    std::string doing = base::get_string(rank, language == base::Language::kChinese ? "doing_zh" : "doing").value_or("");
    std::string words = base::printable(place + (place.empty() || doing.empty() ? "" : ", ") + doing, 400);
    Alike& group = alike[words.empty() ? tr(language, "state unknown") : words];
    group.ranks.push_back(static_cast<int>(number));
    if (int64_t step = base::get_int(rank, "step").value_or(-1); step >= 0) {
      group.least_step = group.least_step < 0 ? step : std::min(group.least_step, step);
      group.most_step = std::max(group.most_step, step);
    }
    (base::get_bool(rank, "waits").value_or(false) ? waiting : others).push_back(static_cast<int>(number));
  }
  if (int64_t still = base::get_int(look, "still_s").value_or(0); still >= kWorthSaying)
    lines.push_back(tr(language, "no step and no output for {} s", still));
  if (!waiting.empty() && !others.empty())
    lines.push_back(
        tr(language, "ranks that wait for others: {}; the others wait for: {}", base::format_ranges(waiting), base::format_ranges(others)));
  std::vector<const std::pair<const std::string, Alike>*> order;
  for (const auto& group : alike) order.push_back(&group);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->second.ranks.size() < b->second.ranks.size(); });
  for (const auto* group : order) {
    if (lines.size() >= kMostLines) break;
    const auto& [some, least, most] = group->second;
    std::string line = tr(language, "rank{} {}: {}", some.size() == 1 ? "" : "s", base::format_ranges(some), group->first);
    if (most >= 0) line += tr(language, "; last step {}", least == most ? std::to_string(most) : fmt::format("{}–{}", least, most));
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace phalanx::cli
