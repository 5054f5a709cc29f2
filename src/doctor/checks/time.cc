#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/catalogue.h"
#include "doctor/checks/rows.h"
#include "doctor/examine.h"

namespace phalanx::doctor {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kSmall = 100'000'000;
constexpr int64_t kLarge = 5 * kSecond;

// The clock most hosts agree with, within a second; of equals the one nearest to ours.
std::optional<int64_t> usual_offset(const Situation& s) {
  std::optional<int64_t> best;
  size_t most = 0;
  for (const HostView& candidate : s.hosts) {
    if (!candidate.clock_offset_ns) continue;
    int64_t at = *candidate.clock_offset_ns;
    size_t agree = static_cast<size_t>(std::count_if(s.hosts.begin(), s.hosts.end(), [&](const HostView& h) {
      return h.clock_offset_ns && std::abs(*h.clock_offset_ns - at) < kSecond;
    }));
    if (agree > most || (agree == most && best && std::abs(at) < std::abs(*best))) most = agree, best = at;
  }
  return best;
}

// How far a host's clock is surely off: what the measurement may have erred by is taken off.
struct Skew {
  size_t host = 0;
  int64_t off_ns = 0;   // ahead if positive
  int64_t sure_ns = 0;  // at least
};
std::vector<Skew> skews(const Situation& s) {
  std::vector<Skew> all;
  std::optional<int64_t> usual = usual_offset(s);
  if (!usual) return all;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    if (!s.hosts[h].clock_offset_ns) continue;
    int64_t off = *s.hosts[h].clock_offset_ns - *usual;
    all.push_back({h, off, std::abs(off) - s.hosts[h].clock_error_ns});
  }
  return all;
}

std::string duration(int64_t ns) { return base::format_duration(std::chrono::nanoseconds(ns)); }

Words skew_words(const Situation& s, const Skew& k) {
  std::string off = duration(std::abs(k.off_ns));
  if (s.single()) return tr("its clock is {} {} this machine's", off, k.off_ns > 0 ? tr("ahead of") : tr("behind"));
  return tr("its clock is {} {} the others'", off, k.off_ns > 0 ? tr("ahead of") : tr("behind"));
}

std::string set_clock(const HostView& h) {
  const std::string& daemon = h.facts.clock.daemon;
  if (daemon == "chronyd") return "sudo chronyc makestep";
  if (daemon == "systemd-timesyncd") return "sudo systemctl restart systemd-timesyncd";
  return "sudo apt install -y chrony && sudo chronyc makestep";
}

void skew(const Situation& s, Findings& findings) {
  for (const Skew& k : skews(s))
    if (k.sure_ns > kLarge) findings.on(k.host, skew_words(s, k), set_clock(s.hosts[k.host]));
}

void skew_small(const Situation& s, Findings& findings) {
  for (const Skew& k : skews(s))
    if (k.sure_ns > kSmall && k.sure_ns <= kLarge) findings.on(k.host, skew_words(s, k), set_clock(s.hosts[k.host]));
}

void unsynced(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  const machine::ClockFacts& c = host.facts.clock;
  if (c.synchronized != false || s.single()) return;
  if (c.daemon.empty())
    findings.on(h, tr("the kernel's clock is not synchronised, and no time service was found"), "sudo apt install -y chrony");
  else
    findings.on(h, tr("{} runs, but the kernel's clock is not synchronised", c.daemon),
                c.daemon == "chronyd" ? "chronyc sources -v" : "timedatectl timesync-status");
}

void zone_differs(const Situation& s, Findings& findings) {
  std::vector<Camp> zones = camps(s, [](const HostView& h) -> std::optional<std::string> {
    if (h.facts.clock.time_zone.empty()) return std::nullopt;
    return std::to_string(h.facts.clock.utc_offset_s);
  });
  if (zones.size() < 2) return;
  const machine::ClockFacts& usual = s.hosts[zones[0].hosts[0]].facts.clock;
  for (size_t z = 1; z < zones.size(); ++z) {
    const machine::ClockFacts& odd = s.hosts[zones[z].hosts[0]].facts.clock;
    double hours = static_cast<double>(odd.utc_offset_s - usual.utc_offset_s) / 3600;
    findings.on(zones[z].hosts, tr("time zone {}; elsewhere {}: its log lines read {:+g} h", odd.time_zone, usual.time_zone, hours),
                "sudo timedatectl set-timezone " + base::shell_quote(usual.time_zone));
  }
}

void wrong_year(const Situation& s, Findings& findings) {
  constexpr int64_t k2024 = 1'704'067'200 * kSecond;  // this program is younger than that
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    int64_t wall = s.hosts[h].facts.clock.wall_ns;
    if (!s.hosts[h].probed || wall == 0 || wall >= k2024) continue;
    int64_t year = 1970 + wall / kSecond / 31'556'952;
    findings.on(h, tr("its clock says it is {}", year), set_clock(s.hosts[h]));
  }
}

constexpr Row kTimeRows[] = {
    {"TIME-SKEW", Severity::kError, skew},
    {"TIME-SKEW-SMALL", Severity::kWarning, skew_small},
    {"TIME-UNSYNCED", Severity::kNote, unsynced},
    {"TIME-ZONE-DIFFERS", Severity::kNote, zone_differs},
    {"TIME-WRONG-YEAR", Severity::kWarning, wrong_year},
};

}  // namespace

std::span<const Row> time_rows() { return kTimeRows; }

}  // namespace phalanx::doctor
