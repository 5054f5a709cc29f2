#include "wire/link_outcome.h"

#include <algorithm>
#include <iterator>

namespace phalanx::wire {
namespace {

constexpr std::string_view kNames[] = {"",         "ok",          "refused", "rejected", "prohibited", "timeout",
                                       "no-route", "unreachable", "stalled", "silent",   "stranger",   "error"};
static_assert(std::size(kNames) == static_cast<size_t>(LinkOutcome::kError) + 1);

}  // namespace

std::string_view name_of(LinkOutcome outcome) { return kNames[static_cast<size_t>(outcome)]; }

std::optional<LinkOutcome> link_outcome(std::string_view name) {
  auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<LinkOutcome>(found - std::begin(kNames));
}

}  // namespace phalanx::wire
