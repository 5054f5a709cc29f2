// The rank that a line's message, or the name of its file, tells.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "diagnosis/logs/line.h"

namespace phalanx::diagnosis {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr size_t kMostDigits = 6;

// Of the digits that the text begins with.
std::optional<int> leading_number(std::string_view text) {
  return to_rank(text.substr(0, std::min(text.find_first_not_of(kDigits), kMostDigits)));
}

}  // namespace

std::optional<int> to_rank(std::string_view digits) {
  auto number = base::parse_int(digits, 0, kMostRanks);
  return number.ok() ? std::optional<int>(static_cast<int>(*number)) : std::nullopt;
}

int rank_of_event(const LogLine& line, std::string_view captured, int rank_of_file) {
  std::optional<int> told = to_rank(captured);
  if (!told) return line.rank >= 0 ? line.rank : rank_of_file;
  bool in_group = line.rank >= 0 && line.text.find(fmt::format("Rank {}]", *told)) != line.text.npos;
  return in_group ? line.rank : *told;
}

NamedRank rank_of_file(std::string_view path) {
  NamedRank named;
  std::vector<std::string_view> parts = base::split(path, '/');
  std::string_view name = parts.back();
  std::string lower = base::to_lower(name);
  size_t at = lower.find("rank");
  if (at != lower.npos) {
    bool local = at >= 6 && lower.substr(at - 6, 6) == "local_";
    std::string_view tail = name.substr(at + 4);
    if (!tail.empty() && (tail[0] == '_' || tail[0] == '-' || tail[0] == '.')) tail.remove_prefix(1);
    if (auto number = leading_number(tail)) (local ? named.local_rank : named.rank) = *number;
    return named;
  }
  if (parts.size() < 2) return named;
  std::string_view folder = parts[parts.size() - 2];
  bool numbered = !folder.empty() && folder.find_first_not_of(kDigits) == folder.npos && folder.size() <= kMostDigits;
  if (folder == "ranks") named.rank = leading_number(name).value_or(-1);
  else if (numbered && parts.size() >= 3 && parts[parts.size() - 3].starts_with("attempt_")) named.local_rank = *leading_number(folder);
  return named;
}

}  // namespace phalanx::diagnosis
