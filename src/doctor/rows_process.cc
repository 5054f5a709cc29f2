#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/catalogue.h"
#include "doctor/mesh_view.h"

namespace doctor {
namespace {

constexpr const char* kLookAtLoad = "uptime; free -m; ps -eo state,pid,wchan:20,args | grep ^D";

std::string age(int64_t seconds) { return base::format_duration(std::chrono::seconds(seconds)); }

// One finding per host: what a dead job left there belongs together.
void leftovers(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const std::vector<host::Leftover>& left = s.hosts[h].facts.processes.leftovers;
    if (!s.hosts[h].probed || left.empty()) continue;
    const host::Leftover& first = left[0];
    std::string fix = "kill";
    bool mine = true;
    for (const host::Leftover& l : left) {
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
  for (const Blame& b : blame(s, [&](const cluster::Link& link) { return link.outcome == "silent"; })) {
    bool known = std::any_of(b.hosts.begin(), b.hosts.end(), [&](size_t h) { return !s.hosts[h].probed; });
    std::string text = ways(s, b);
    if (!known) findings.on(b.hosts, {text + ": connects, then no answer", text + "：能建立连接，之后没有应答"}, kLookAtLoad);
  }
}

constexpr Row kProcessRows[] = {
    {"PROC-AGENT-SILENT",
     Severity::kError,
     Group::kProcess,
     {"a host stands still", "主机没有应答"},
     {"Does the agent of every host answer in time?", "每台主机的 agent 是否及时应答？"},
     {"The login worked and the agent started, then it said nothing for seconds. The machine is short of memory and swaps, its processes "
      "were stopped, its disk hangs (state D), or the way back to you lets only small packets through. A rank started there would hang "
      "the same way, and all others would wait for it.",
      "登录成功、agent 也已启动，之后数秒没有任何应答：可能是内存不足正在换页、进程被暂停、磁盘挂住（D "
      "状态），或者返回路径只放行小包。在这台主机上启动的 "
      "rank 会同样卡住，其他所有 rank 都要等它。"},
     {"Look at its load, its memory and at what waits for its disk:\n$ uptime; free -m; ps -eo state,pid,wchan:20,args | grep ^D",
      "查看该主机的负载、内存，以及等待磁盘的进程：\n$ uptime; free -m; ps -eo state,pid,wchan:20,args | grep ^D"},
     "",
     silent},
    {"PROC-LEFTOVERS",
     Severity::kWarning,
     Group::kProcess,
     {"ranks of a dead job are still running", "已结束任务的 rank 仍在运行"},
     {"Does a process with a rank's variables run whose launcher is gone?", "是否有带 rank 环境变量、但启动器已不在的进程？"},
     {"When a launcher is killed, its ranks are given to process 1 and go on: they hold GPU memory (\"CUDA out of memory … Process N has … "
      "in use\"), "
      "ports (\"Address already in use\") and shared memory, or wait in a collective for ranks that no longer exist. A rank that was "
      "started by "
      "hand under nohup looks the same: look before you end it.",
      "启动器被杀后，它的 rank 会被 1 号进程接管并继续运行：占着显存（\"CUDA out of memory … Process N has … in use\"）、端口（\"Address "
      "already in "
      "use\"）和共享内存，或在集合通信里等待早已不存在的 rank。用 nohup 手动启动的 rank 看上去也是这样：结束之前先确认。"},
     {"Look at them, then end exactly these:\n$ ps -o pid,ppid,user,etime,args -p <pid>\n$ kill <pid>",
      "先确认，再只结束这些进程：\n$ ps -o pid,ppid,user,etime,args -p <pid>\n$ kill <pid>"},
     "",
     leftovers},
};

}  // namespace

std::span<const Row> process_rows() { return kProcessRows; }

}  // namespace doctor
