#include "cli/records/look_story.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "diagnosis/hang/shares.h"
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

// "what the ranks spend their time on (72 looks, 40 s ago): rank 0: 30 % computing, 68 % waiting for other ranks"; the averages of many.
void add_shares(std::vector<std::string>& lines, const Json& look, base::Language language) {
  constexpr size_t kEach = 8;  // ranks that get a line of their own
  static constexpr std::pair<const char*, diagnosis::Spent> kKinds[] = {
      {"computing", diagnosis::Spent::kComputing}, {"communicating", diagnosis::Spent::kCommunicating},
      {"loading", diagnosis::Spent::kLoading},     {"saving", diagnosis::Spent::kSaving},
      {"device", diagnosis::Spent::kDevice},       {"else", diagnosis::Spent::kElse}};
  struct One {
    int64_t rank = 0;
    std::array<double, std::size(kKinds)> part{};
  };
  std::vector<One> ranks;
  One mean;
  for (const Json& rank : look["ranks"]) {
    auto shares = rank.is_object() ? rank.find("shares") : rank.end();
    if (!rank.is_object() || shares == rank.end() || !shares->is_object()) continue;
    One one{base::get_int(rank, "rank").value_or(0), {}};
    for (size_t i = 0; i < std::size(kKinds); ++i) {
      auto part = shares->find(kKinds[i].first);
      if (part != shares->end() && part->is_number()) one.part[i] = std::clamp(part->get<double>(), 0.0, 1.0);
      mean.part[i] += one.part[i];
    }
    ranks.push_back(one);
  }
  if (ranks.empty()) return;
  auto words = [&](const One& one, double of) {
    std::string text;
    for (size_t i = 0; i < std::size(kKinds); ++i)
      if (double part = one.part[i] / of; part >= 0.01)
        text += fmt::format("{}{:.0f} % {}", text.empty() ? "" : ", ", part * 100, diagnosis::name_of(kKinds[i].second).in(language));
    return text;
  };
  lines.push_back(tr(language, "what the ranks spend their time on, {} s ago:", base::get_int(look, "shares_ago_s").value_or(0)));
  if (ranks.size() > kEach) {
    lines.push_back("  " + tr(language, "mean of {} ranks: {}", ranks.size(), words(mean, static_cast<double>(ranks.size()))));
    // Those that wait least and most: whom the others wait for, and who waits.
    std::stable_sort(ranks.begin(), ranks.end(), [](const One& a, const One& b) { return a.part[1] < b.part[1]; });
    ranks.erase(ranks.begin() + kEach / 4, ranks.end() - kEach / 4);
  }
  for (const One& one : ranks) lines.push_back("  " + tr(language, "rank {}: {}", one.rank, words(one, 1)));
}

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
  add_shares(lines, look, language);
  return lines;
}

std::string scaling_line(const Json& record, std::optional<double> step_s, const std::vector<logs::Run>& earlier, base::Language language) {
  const int64_t world = base::get_int(record, "world_size").value_or(0);
  if (!step_s || *step_s <= 0 || world < 2 || !record.contains("command")) return "";
  for (const logs::Run& run : earlier) {
    const int64_t ranks = base::get_int(run.record, "world_size").value_or(0);
    const double before = base::get_number(run.record, "step_s").value_or(0);
    if (ranks < 1 || ranks >= world || before <= 0 || base::get_string(run.record, "id") == base::get_string(record, "id")) continue;
    if (run.record.value("command", Json()) != record["command"] || run.record.value("workdir", Json()) != record.value("workdir", Json()))
      continue;
    return tr(language,
              "a step takes {:.3g} s on {} ranks; it took {:.3g} s on {} in run {}: with the same batch for each rank, every rank gets "
              "{:.0f} % of the work done that it got done there",
              *step_s, world, before, ranks, run.id, 100 * before / *step_s);
  }
  return "";
}

}  // namespace phalanx::cli
