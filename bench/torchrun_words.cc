#include "torchrun_words.h"

#include <fmt/format.h>

#include "base/text.h"
#include "os/process.h"

namespace phalanx::bench {
namespace {

constexpr std::string_view kBlock = "Root Cause (first observed failure):";

// The integer that begins the field's value: "  rank      : 1 (local_rank: 0)" is 1.
std::optional<int> number_of(std::string_view line, std::string_view field) {
  line = base::trim(line);
  if (!line.starts_with(field)) return std::nullopt;
  line = base::trim(line.substr(field.size()));
  if (!line.starts_with(':')) return std::nullopt;
  line = base::trim(line.substr(1));
  auto number = base::parse_int(line.substr(0, line.find(' ')), -1'000'000, 1'000'000);
  return number.ok() ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

}  // namespace

std::optional<Blame> root_cause(std::string_view text) {
  size_t at = text.rfind(kBlock);
  if (at == std::string_view::npos) return std::nullopt;
  Blame blame;
  for (std::string_view line : base::split_lines(text.substr(at))) {
    if (auto rank = number_of(line, "rank")) blame.rank = *rank;
    if (auto code = number_of(line, "exitcode")) blame.how = *code < 0 ? os::signal_name(-*code) : fmt::format("exit code {}", *code);
    if (line.starts_with("=====")) break;
  }
  return blame.rank < 0 ? std::nullopt : std::optional(blame);
}

Named judge(const std::vector<std::optional<Blame>>& by_host, int right_rank) {
  bool right = false, wrong = false;
  for (const auto& blame : by_host) {
    if (!blame) continue;
    (blame->rank == right_rank ? right : wrong) = true;
  }
  if (right) return wrong ? Named::kDisagreed : Named::kRight;
  return wrong ? Named::kWrong : Named::kNone;
}

std::string describe(const std::vector<std::optional<Blame>>& by_host) {
  std::string text;
  for (size_t h = 0; h < by_host.size(); ++h)
    if (by_host[h]) text += fmt::format("{}h{}: rank {}, {}", text.empty() ? "" : "; ", h + 1, by_host[h]->rank, by_host[h]->how);
  return text;
}

}  // namespace phalanx::bench
