#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/catalogue.h"
#include "doctor/checks/rows.h"
#include "doctor/views/mesh_view.h"

namespace phalanx::doctor {
namespace {

constexpr const char* kLookAtLoad = "uptime; free -m; ps -eo state,pid,wchan:20,args | grep ^D";

std::string age(int64_t seconds) { return base::format_duration(std::chrono::seconds(seconds)); }

// One finding per host: what a dead job left there belongs together.
void leftovers(const Situation&, size_t h, const HostView& host, Findings& findings) {
  const std::vector<machine::Leftover>& left = host.facts.processes.leftovers;
  if (left.empty()) return;
  const machine::Leftover& first = left[0];
  std::string fix = "kill";
  bool mine = true;
  for (const machine::Leftover& l : left) {
    fix += fmt::format(" {}", l.pid);
    mine = mine && l.user == host.facts.machine.user;
  }
  Words what = tr("pid {} of {}, {} old ({}): {}", first.pid, first.user, age(first.age_s), first.why, first.command);
  if (left.size() > 1) what = tr("{} and {} more", what, left.size() - 1, words::chinese_only(left.size()));
  findings.on(h, what, (mine ? "" : "sudo ") + fix);
}

// The agent was started and greeted us, and then said nothing: the machine stands still, or nearly.
void silent(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    if (host.reached && !host.probed && !host.error.empty()) findings.on(h, tr("the agent started; then {}", host.error), kLookAtLoad);
  }
  for (const Blame& b : blame(s, [&](const hosts::Link& link) { return link.outcome == wire::LinkOutcome::kSilent; })) {
    bool known = std::any_of(b.hosts.begin(), b.hosts.end(), [&](size_t h) { return !s.hosts[h].probed; });
    std::string text = ways(s, b);
    if (!known) findings.on(b.hosts, tr("{}: connects, then no answer", text), kLookAtLoad);
  }
}

constexpr Row kProcessRows[] = {
    {"PROC-AGENT-SILENT", Severity::kError, silent},
    {"PROC-LEFTOVERS", Severity::kWarning, leftovers},
};

}  // namespace

std::span<const Row> process_rows() { return kProcessRows; }

}  // namespace phalanx::doctor
