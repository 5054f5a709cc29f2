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
void leftovers(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const std::vector<machine::Leftover>& left = s.hosts[h].facts.processes.leftovers;
    if (!s.hosts[h].probed || left.empty()) continue;
    const machine::Leftover& first = left[0];
    std::string fix = "kill";
    bool mine = true;
    for (const machine::Leftover& l : left) {
      fix += fmt::format(" {}", l.pid);
      mine = mine && l.user == s.hosts[h].facts.machine.user;
    }
    std::string more = left.size() > 1 ? fmt::format(" and {} more", left.size() - 1) : "";
    std::string more_chinese = left.size() > 1 ? fmt::format(" 等 {} 个进程", left.size()) : "";
    findings.on(h,
                {fmt::format("pid {} of {}, {} old ({}): {}{}", first.pid, first.user, age(first.age_s), first.why, first.command, more),
                 fmt::format("pid {}（用户 {}，已运行 {}；{}）：{}{}", first.pid, first.user, age(first.age_s), first.why, first.command,
                             more_chinese)},
                (mine ? "" : "sudo ") + fix);
  }
}

// The agent was started and greeted us, and then said nothing: the machine stands still, or nearly.
void silent(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    if (host.reached && !host.probed && !host.error.empty())
      findings.on(h, {host.error, fmt::format("agent 已启动，但之后没有应答：{}", host.error)}, kLookAtLoad);
  }
  for (const Blame& b : blame(s, [&](const hosts::Link& link) { return link.outcome == wire::LinkOutcome::kSilent; })) {
    bool known = std::any_of(b.hosts.begin(), b.hosts.end(), [&](size_t h) { return !s.hosts[h].probed; });
    std::string text = ways(s, b);
    if (!known) findings.on(b.hosts, {text + ": connects, then no answer", text + "：能建立连接，之后没有应答"}, kLookAtLoad);
  }
}

constexpr Row kProcessRows[] = {
    {"PROC-AGENT-SILENT", Severity::kError, silent},
    {"PROC-LEFTOVERS", Severity::kWarning, leftovers},
};

}  // namespace

std::span<const Row> process_rows() { return kProcessRows; }

}  // namespace phalanx::doctor
