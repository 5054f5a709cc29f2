#include "view/fabric_view.h"
#include "words/message.h"

#include <fmt/format.h>

#include <algorithm>

namespace phalanx::view {
namespace {

using doctor::Situation;
using hosts::Link;
using words::tr;

constexpr size_t kMatrixHosts = 16;  // above, not all pairs are tried: a list

int64_t median_speed(const Situation& s) {
  std::vector<int64_t> speeds;
  for (const Link& link : s.mesh.links)
    if (link.bytes_per_second > 0) speeds.push_back(link.bytes_per_second);
  if (speeds.empty()) return 0;
  auto middle = speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2);
  std::nth_element(speeds.begin(), middle, speeds.end());
  return *middle;
}

bool is_slow(const Link& link, int64_t median) { return link.bytes_per_second > 0 && link.bytes_per_second * 2 < median; }

const std::string& name(const Situation& s, int64_t host) { return s.hosts[static_cast<size_t>(host)].name; }

std::string speed(const Link& link) {
  if (link.outcome != wire::LinkOutcome::kOk) return std::string(wire::name_of(link.outcome));
  if (link.bytes_per_second == 0) return "-";
  double gbit = static_cast<double>(link.bytes_per_second) * 8 / 1e9;
  return gbit < 1 ? fmt::format("{:.0f} Mb/s", gbit * 1000) : fmt::format("{:.1f} Gb/s", gbit);
}

std::string trip(const Link& link) {
  if (link.outcome != wire::LinkOutcome::kOk) return std::string(wire::name_of(link.outcome));
  return fmt::format("{:.0f} us", static_cast<double>(link.round_trip_ns) / 1e3);
}

const Link* find(const Situation& s, size_t from, size_t to) {
  for (const Link& link : s.mesh.links)
    if (!link.master_port && link.from == static_cast<int64_t>(from) && link.to == static_cast<int64_t>(to)) return &link;
  return nullptr;
}

// Rows send, columns receive. `*` marks a slow link.
std::string matrix(const Situation& s, int64_t median, std::string (*cell)(const Link&), bool marks) {
  std::vector<std::vector<std::string>> rows(1, {""});
  for (const doctor::HostView& host : s.hosts) rows[0].push_back(host.name);
  for (size_t from = 0; from < s.hosts.size(); ++from) {
    rows.push_back({s.hosts[from].name});
    for (size_t to = 0; to < s.hosts.size(); ++to) {
      const Link* link = find(s, from, to);
      rows.back().push_back(!link ? "" : cell(*link) + (marks && is_slow(*link, median) ? "*" : ""));
    }
  }
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (const auto& row : rows) {
    std::string line = fmt::format("{:<{}}", row[0], widths[0]);
    for (size_t i = 1; i < row.size(); ++i) line += fmt::format("  {:>{}}", row[i], widths[i]);
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string list(const Situation& s, int64_t median) {
  std::string out;
  for (const Link& link : s.mesh.links)
    if (!link.master_port)
      out += fmt::format("{} -> {}  {}  {}{}\n", name(s, link.from), name(s, link.to), speed(link), trip(link),
                         is_slow(link, median) ? "  *" : "");
  return out;
}

}  // namespace

bool fabric_holds(const Situation& s) {
  return !s.mesh.links.empty() &&
         std::all_of(s.mesh.links.begin(), s.mesh.links.end(), [](const Link& l) { return l.outcome == wire::LinkOutcome::kOk; });
}

std::string fabric_text(const Situation& s, base::Language language) {
  if (s.mesh.links.empty()) return tr(language, "no network common to all hosts was found; nothing was measured\n");
  int64_t median = median_speed(s);
  std::string out;
  if (s.hosts.size() <= kMatrixHosts) {
    out += tr(language, "bandwidth (rows send, columns receive)\n");
    out += matrix(s, median, speed, true);
    out += tr(language, "\nround trip\n");
    out += matrix(s, median, trip, false);
  } else {
    out += list(s, median);
  }
  std::string slow;
  Link typical;
  typical.outcome = wire::LinkOutcome::kOk;
  typical.bytes_per_second = median;
  for (const Link& link : s.mesh.links) {
    if (!is_slow(link, median)) continue;
    slow += fmt::format("  {} -> {}: {}\n", name(s, link.from), name(s, link.to), speed(link));
  }
  if (!slow.empty()) out += tr(language, "\n* less than half of the median, {}\n{}", speed(typical), slow);
  return out;
}

base::Json fabric_json(const Situation& s) {
  int64_t median = median_speed(s);
  base::Json links = base::Json::array();
  for (const Link& link : s.mesh.links)
    links.push_back({{"from", name(s, link.from)},
                     {"to", name(s, link.to)},
                     {"address", link.address},
                     {"outcome", wire::name_of(link.outcome)},
                     {"bytes_per_second", link.bytes_per_second},
                     {"round_trip_ns", link.round_trip_ns},
                     {"retransmits", link.retransmits},
                     {"slow", is_slow(link, median)}});
  return {{"schema", 1}, {"complete", s.mesh.complete}, {"median_bytes_per_second", median}, {"links", std::move(links)}};
}

}  // namespace phalanx::view
