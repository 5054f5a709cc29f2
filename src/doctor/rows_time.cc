#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/catalogue.h"
#include "doctor/examine.h"

namespace doctor {
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
  if (s.single())
    return {fmt::format("its clock is {} {} this machine's", off, k.off_ns > 0 ? "ahead of" : "behind"),
            fmt::format("它的时钟比本机{} {}", k.off_ns > 0 ? "快" : "慢", off)};
  return {fmt::format("its clock is {} {} the others'", off, k.off_ns > 0 ? "ahead of" : "behind"),
          fmt::format("它的时钟比其他机器{} {}", k.off_ns > 0 ? "快" : "慢", off)};
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

void unsynced(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const host::ClockFacts& c = s.hosts[h].facts.clock;
    if (!s.hosts[h].probed || c.synchronized != false || s.single()) continue;
    if (c.daemon.empty())
      findings.on(h, {"the kernel's clock is not synchronised, and no time service was seen", "内核时钟未同步，也没有发现时间同步服务"},
                  "sudo apt install -y chrony");
    else
      findings.on(h,
                  {fmt::format("{} runs, but the kernel's clock is not synchronised", c.daemon),
                   fmt::format("{} 在运行，但内核时钟未同步", c.daemon)},
                  c.daemon == "chronyd" ? "chronyc sources -v" : "timedatectl timesync-status");
  }
}

void zone_differs(const Situation& s, Findings& findings) {
  std::vector<Camp> zones = camps(s, [](const HostView& h) -> std::optional<std::string> {
    if (h.facts.clock.time_zone.empty()) return std::nullopt;
    return std::to_string(h.facts.clock.utc_offset_s);
  });
  if (zones.size() < 2) return;
  const host::ClockFacts& usual = s.hosts[zones[0].hosts[0]].facts.clock;
  for (size_t z = 1; z < zones.size(); ++z) {
    const host::ClockFacts& odd = s.hosts[zones[z].hosts[0]].facts.clock;
    double hours = static_cast<double>(odd.utc_offset_s - usual.utc_offset_s) / 3600;
    findings.on(zones[z].hosts,
                {fmt::format("time zone {}; elsewhere {}: its log lines read {:+g} h", odd.time_zone, usual.time_zone, hours),
                 fmt::format("时区为 {}，其他机器为 {}：日志时间相差 {:+g} 小时", odd.time_zone, usual.time_zone, hours)},
                "sudo timedatectl set-timezone " + base::shell_quote(usual.time_zone));
  }
}

void wrong_year(const Situation& s, Findings& findings) {
  constexpr int64_t k2024 = 1'704'067'200 * kSecond;  // this program is younger than that
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    int64_t wall = s.hosts[h].facts.clock.wall_ns;
    if (!s.hosts[h].probed || wall == 0 || wall >= k2024) continue;
    int64_t year = 1970 + wall / kSecond / 31'556'952;
    findings.on(h, {fmt::format("its clock says it is {}", year), fmt::format("它的时钟显示现在是 {} 年", year)}, set_clock(s.hosts[h]));
  }
}

constexpr Row kTimeRows[] = {
    {"TIME-SKEW",
     Severity::kError,
     Group::kTime,
     {"clocks are seconds apart", "时钟相差数秒以上"},
     {"Are all clocks within 5 s of each other?", "各机器的时钟相差是否在 5 秒以内？"},
     {"torchrun's c10d rendezvous compares the hosts' wall clocks and throws out who seems silent for 15 s: \"… have been removed from the "
      "rendezvous … since they had no heartbeat\". TLS says \"certificate is not yet valid\", build tools on shared folders \"Clock skew "
      "detected\", and merged logs show effects before causes. Offsets are measured by the exchange with the least round trip, its half "
      "taken "
      "as the error.",
      "torchrun 的 c10d rendezvous 会比较各机器的墙上时钟，认为 15 秒没有心跳的节点会被剔除：\"… have been removed from the rendezvous … "
      "since "
      "they had no heartbeat\"。TLS 报 \"certificate is not yet valid\"，共享目录上的编译工具报 \"Clock skew "
      "detected\"，合并后的日志因果颠倒。"
      "时钟差由往返时间最短的一次测量得出，误差按往返时间的一半计。"},
     {"Install a time service and set the clock at once:\n$ sudo apt install -y chrony && sudo chronyc makestep\n$ chronyc tracking",
      "安装时间同步服务并立即校准：\n$ sudo apt install -y chrony && sudo chronyc makestep\n$ chronyc tracking"},
     "torch/distributed/elastic/rendezvous/dynamic_rendezvous.py (keep-alive 5 s, 3 misses)",
     skew},
    {"TIME-SKEW-SMALL",
     Severity::kWarning,
     Group::kTime,
     {"clocks are a little apart", "时钟略有偏差"},
     {"Are all clocks within 100 ms of each other, the error of the measurement allowed for?",
      "扣除测量误差后，各时钟相差是否在 100 毫秒以内？"},
     {"The job runs, but the order of log lines from different hosts cannot be trusted, and NCCL's RAS says \"negative travel times … "
      "clocks are "
      "*not* synchronized\". A clock that drifts goes on to drift.",
      "任务能跑，但不同机器日志的先后顺序不可信，NCCL RAS 会提示 \"negative travel times … clocks are *not* "
      "synchronized\"。时钟还会继续漂移。"},
     {"Let a time service keep it:\n$ sudo apt install -y chrony\n$ chronyc tracking",
      "用时间同步服务校准：\n$ sudo apt install -y chrony\n$ chronyc tracking"},
     "NCCL src/ras",
     skew_small},
    {"TIME-UNSYNCED",
     Severity::kNote,
     Group::kTime,
     {"a clock is not synchronised", "时钟没有同步"},
     {"Does the kernel count its clock as synchronised?", "内核是否认为自己的时钟已同步？"},
     {"Nothing keeps the clock right (adjtimex: STA_UNSYNC). It may be right now, and seconds off in a month. Some virtual machines are "
      "kept by "
      "their hypervisor, which the kernel does not know.",
      "没有服务在校准时钟（adjtimex：STA_UNSYNC）。现在可能是准的，一个月后就会差几秒。有些虚拟机由宿主机校时，内核并不知情。"},
     {"Install a time service:\n$ sudo apt install -y chrony", "安装时间同步服务：\n$ sudo apt install -y chrony"},
     "adjtimex(2)",
     unsynced},
    {"TIME-ZONE-DIFFERS",
     Severity::kNote,
     Group::kTime,
     {"hosts are in different time zones", "各机器时区不同"},
     {"Do all hosts print the same local time?", "各机器显示的本地时间是否一致？"},
     {"Programs print local time: lines of the same moment are hours apart, and what seems to be the first error is not.",
      "程序日志打印的是本地时间：同一时刻的日志相差数小时，看上去最早的错误其实不是最早的。"},
     {"Set one zone everywhere:\n$ sudo timedatectl set-timezone UTC", "统一时区：\n$ sudo timedatectl set-timezone UTC"},
     "",
     zone_differs},
    {"TIME-WRONG-YEAR",
     Severity::kWarning,
     Group::kTime,
     {"a clock is years behind", "时钟落后数年"},
     {"Does the clock show a time after 2023?", "时钟显示的时间是否在 2023 年之后？"},
     {"A machine that lost its battery starts in 1970 or at its firmware's date. HTTPS fails with \"certificate is not yet valid\", make "
      "rebuilds "
      "everything, and new checkpoints look older than old ones.",
      "主板电池失效的机器会从 1970 年或固件日期开始计时。HTTPS 报 \"certificate is not yet valid\"，make 反复重编，新 checkpoint "
      "看起来比旧的还早。"},
     {"Set the clock, and keep it:\n$ sudo apt install -y chrony && sudo chronyc makestep && sudo hwclock --systohc",
      "校准并保持：\n$ sudo apt install -y chrony && sudo chronyc makestep && sudo hwclock --systohc"},
     "",
     wrong_year},
};

}  // namespace

std::span<const Row> time_rows() { return kTimeRows; }

}  // namespace doctor
