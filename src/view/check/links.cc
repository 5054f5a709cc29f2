// What the mesh test found, as a sentence or two.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "base/unicode.h"
#include "view/check/row_list.h"
#include "view/check/rows.h"

namespace phalanx::view {
namespace {

using doctor::Situation;
using hosts::Link;
using words::tr;

constexpr size_t kMostFailures = 3;
constexpr int64_t kOddFactor = 2;  // a link this much slower than the fastest is named

std::string name(const Situation& s, int64_t host) {
  bool known = host >= 0 && static_cast<size_t>(host) < s.hosts.size();
  return known ? s.hosts[static_cast<size_t>(host)].name : fmt::format("#{}", host);
}

std::string arrow(const Situation& s, const Link& link) { return fmt::format("{} → {}", name(s, link.from), name(s, link.to)); }

std::string duration(int64_t ns) { return base::format_duration(std::chrono::nanoseconds(ns)); }
std::string rate(int64_t bytes_per_second) { return speed_text(static_cast<double>(bytes_per_second) * 8 / 1e6); }

// The least and the most of what was measured (not 0), as text, and the link with the worse.
template <typename Value>
const Link* worst(const std::vector<const Link*>& links, Value value, bool most) {
  const Link* found = nullptr;
  for (const Link* link : links) {
    if (value(*link) <= 0) continue;
    if (!found || (most ? value(*link) > value(*found) : value(*link) < value(*found))) found = link;
  }
  return found;
}

std::string measured(const Situation& s, const std::vector<const Link*>& good, base::Language language) {
  std::string out;
  auto trip = [](const Link& link) { return link.round_trip_ns; };
  auto speed = [](const Link& link) { return link.bytes_per_second; };
  auto range = [](const std::string& a, const std::string& b) { return a == b ? a : a + "–" + b; };
  const Link* slow = worst(good, trip, true);
  if (slow) {
    const Link* fast = worst(good, trip, false);
    out += tr(language, "round trip {}", range(duration(trip(*fast)), duration(trip(*slow))));
  }
  slow = worst(good, speed, false);
  if (!slow) return out;
  const Link* fast = worst(good, speed, true);
  out += (out.empty() ? "" : " · ") + range(rate(speed(*slow)), rate(speed(*fast)));
  if (speed(*fast) / kOddFactor >= speed(*slow)) out += tr(language, " · slowest {}", arrow(s, *slow));
  return out;
}

}  // namespace

std::string links_text(const Situation& situation, base::Language language) {
  if (situation.mesh.links.empty()) return "";
  std::vector<const Link*> good;
  std::vector<const Link*> bad;
  for (const Link& link : situation.mesh.links) (link.outcome == wire::LinkOutcome::kOk ? good : bad).push_back(&link);
  std::string out = bad.empty() ? tr(language, "all {} connections work", good.size())
                                : tr(language, "{} of {} connections failed", bad.size(), good.size() + bad.size());
  if (!bad.empty()) {
    out += tr(language, ": ");
    for (size_t i = 0; i < std::min(bad.size(), kMostFailures); ++i)
      out += fmt::format("{}{} ({})", i ? ", " : "", arrow(situation, *bad[i]), wire::name_of(bad[i]->outcome));
    if (bad.size() > kMostFailures) out += ", …";
  }
  return join_parts({out, measured(situation, good, language)});
}

}  // namespace phalanx::view
