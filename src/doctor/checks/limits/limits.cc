// What a rank inherits: open files, processes, locked memory, stack, sizes.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/examine.h"

namespace phalanx::doctor {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kGiB = 1 << 30;
constexpr int64_t kUsualFiles = 1024;  // the kernel's default (INR_OPEN_CUR)

std::string bytes(int64_t n) { return base::format_bytes(static_cast<uint64_t>(std::max<int64_t>(n, 0))); }

// Here the shell can raise it up to the hard limit; another host gives its limits to the next login.
std::string raise(const Situation& s, const HostView& h, const char* option, const char* item, const std::string& value, int64_t hard) {
  if (s.single() && hard < 0) return fmt::format("ulimit -{} {}", option, value);
  std::string user = h.facts.machine.user.empty() ? "*" : h.facts.machine.user;
  return fmt::format("echo '{} - {} {}' | sudo tee /etc/security/limits.d/95-{}.conf", user, item, value, item);
}

// A few hundred for Python and its libraries, and sockets to every other rank: Gloo holds one per pair and group, NCCL several per peer.
int64_t files_needed(int world) { return std::max<int64_t>(kUsualFiles, 512 + 8 * static_cast<int64_t>(world)); }

void nofile(const Situation& s, Findings& findings) {
  int64_t need = files_needed(s.job.world);
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const machine::LimitsFacts& l = s.hosts[h].facts.limits;
    if (!s.hosts[h].probed || l.nofile <= 0 || l.nofile >= need) continue;
    findings.on(h,
                tr("at most {} open files (hard limit {}); {} may need {}", l.nofile, l.nofile_hard,
                   s.job.world > 0 ? tr("{} ranks", s.job.world) : tr("a rank"), need),
                raise(s, s.hosts[h], "n", "nofile", "1048576", l.nofile_hard < 0 || l.nofile_hard >= 1'048'576 ? -1 : l.nofile_hard));
  }
}

void nofile_differs(const Situation& s, Findings& findings) {
  int64_t most = 0;
  std::string where;
  auto value = [](const HostView& h) { return h.facts.limits.nofile < 0 ? INT64_MAX : h.facts.limits.nofile; };
  for (const HostView& h : s.hosts)
    if (h.probed && value(h) > most) most = value(h), where = h.name;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    constexpr int64_t kPlenty = 4096, kFactor = 16;
    int64_t own = s.hosts[h].probed ? value(s.hosts[h]) : 0;
    if (own <= 0 || own >= kPlenty || most / kFactor < own) continue;
    findings.on(h, tr("at most {} open files; on {} {}", own, where, most == INT64_MAX ? tr("any number") : tr("{}", std::to_string(most))),
                raise(s, s.hosts[h], "n", "nofile", "1048576", 0));
  }
}

// Threads of a rank: its libraries' pools, NCCL's proxies, loader workers. With less than this some library fails to start one.
constexpr int64_t kThreadsPerRank = 64;

// root is exempt from RLIMIT_NPROC (kernel/fork.c: CAP_SYS_RESOURCE).
std::optional<int64_t> user_room(const HostView& h) {
  const machine::LimitsFacts& l = h.facts.limits;
  if (!h.probed || l.nproc <= 0 || l.nproc_used <= 0 || h.facts.machine.uid == 0) return std::nullopt;
  return std::max<int64_t>(0, l.nproc - l.nproc_used);
}
std::optional<int64_t> cgroup_room(const HostView& h) {
  const machine::LimitsFacts& l = h.facts.limits;
  if (!h.probed || l.pids_max <= 0) return std::nullopt;
  return std::max<int64_t>(0, l.pids_max - l.pids_used);
}

void nproc(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    std::optional<int64_t> room = user_room(host);
    if (!room || *room >= kThreadsPerRank * std::max(1, host.ranks)) continue;
    const machine::LimitsFacts& l = host.facts.limits;
    findings.on(
        h,
        tr("user {} is limited to {} threads and has {}; {} ranks start here", host.facts.machine.user, l.nproc, l.nproc_used, host.ranks),
        raise(s, host, "u", "nproc", "unlimited", l.nproc_hard));
  }
}

void pids_max(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    std::optional<int64_t> room = cgroup_room(host);
    if (!room || *room >= kThreadsPerRank * std::max(1, host.ranks)) continue;
    const machine::LimitsFacts& l = host.facts.limits;
    findings.on(h, tr("{} allows {} tasks and has {}; {} ranks start here", l.pids_cgroup, l.pids_max, l.pids_used, host.ranks),
                fmt::format("echo max | sudo tee {}/pids.max", l.pids_cgroup));
  }
}

// Two processes per rank at least: itself and whatever it starts.
void no_room(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    if (host.ranks <= 0) continue;
    for (auto [room, what] : {std::pair(user_room(host), "RLIMIT_NPROC"), {cgroup_room(host), "pids.max"}}) {
      if (!room || *room >= host.ranks) continue;
      findings.on(h, tr("{} leaves room for {} processes; {} ranks start here", what, *room, host.ranks));
    }
  }
}

bool has_infiniband(const Situation& s, size_t h) {
  if (s.variable(h, "NCCL_IB_DISABLE") == "1") return false;
  for (const machine::IbDevice& device : s.hosts[h].facts.infiniband.devices)
    for (const machine::IbPort& port : device.ports)
      if (port.state == "ACTIVE") return true;
  return false;
}

// Locked memory matters where NCCL registers buffers with an HCA: several hosts, GPUs, a port that is up. root is exempt (CAP_IPC_LOCK).
std::optional<int64_t> lockable(const Situation& s, size_t h) {
  const HostView& host = s.hosts[h];
  if (!host.probed || s.single() || host.facts.machine.uid == 0 || !s.job.wants_gpus || !has_infiniband(s, h)) return std::nullopt;
  return host.facts.limits.memlock > 0 ? std::optional(host.facts.limits.memlock) : std::nullopt;
}
constexpr int64_t kTooLittle = 16 * kMiB, kEnough = 4 * kGiB;
constexpr char kUnlock[] =
    "printf '* soft memlock unlimited\\n* hard memlock unlimited\\n' | sudo tee /etc/security/limits.d/95-memlock.conf";

void memlock(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (std::optional<int64_t> limit = lockable(s, h); limit && *limit < kTooLittle)
      findings.on(h, tr("only {} of memory may be locked; InfiniBand is up", bytes(*limit)), kUnlock);
}
void memlock_low(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (std::optional<int64_t> limit = lockable(s, h); limit && *limit >= kTooLittle && *limit < kEnough)
      findings.on(h, tr("only {} of memory may be locked; InfiniBand is up", bytes(*limit)), kUnlock);
}

// "2.20.5+cuda12.4" → 2020. NCCL from 2.30 on chooses a finite size itself ("Stack size limit (unlimited) is unsafe").
int version_number(const std::string& version) {
  std::vector<std::string_view> f = base::split(version, '.');
  if (f.size() < 2) return 0;
  base::Result<int64_t> major = base::parse_int(f[0], 0, 99), minor = base::parse_int(f[1], 0, 999);
  return major.ok() && minor.ok() ? static_cast<int>(*major * 1000 + *minor) : 0;
}

void stack_unlimited(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  if (host.facts.limits.stack != -1 || host.facts.software.nccl.empty() || !s.job.wants_gpus) return;
  std::string version = host.facts.software.nccl[0].version;
  int number = version_number(version);
  if (number == 0 || number >= 2030) return;
  findings.on(h, tr("ulimit -s is unlimited, NCCL is {}", version),
              s.single() ? "ulimit -s 8192" : raise(s, host, "s", "stack", "8192", 0));
}

void file_size(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  const machine::LimitsFacts& l = host.facts.limits;
  if (l.file_size <= 0) return;
  findings.on(h, tr("files are limited to {}", bytes(l.file_size)), raise(s, host, "f", "fsize", "unlimited", -1));
}

void address_space(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  const machine::LimitsFacts& l = host.facts.limits;
  if (l.address_space <= 0) return;
  findings.on(h, tr("the address space of a process is limited to {}", bytes(l.address_space)), raise(s, host, "v", "as", "unlimited", -1));
}

constexpr Row kProcessLimitRows[] = {
    {"LIM-NOFILE", Severity::kWarning, nofile},
    {"LIM-NOFILE-DIFFERS", Severity::kWarning, nofile_differs},
    {"LIM-NPROC", Severity::kWarning, nproc},
    {"LIM-PIDS-MAX", Severity::kWarning, pids_max},
    {"LIM-NO-PROCESSES", Severity::kError, no_room},
    {"LIM-MEMLOCK", Severity::kError, memlock},
    {"LIM-MEMLOCK-LOW", Severity::kWarning, memlock_low},
    {"LIM-STACK-UNLIMITED", Severity::kWarning, stack_unlimited},
    {"LIM-FILE-SIZE", Severity::kWarning, file_size},
    {"LIM-ADDRESS-SPACE", Severity::kWarning, address_space},
};

}  // namespace

std::span<const Row> process_limit_rows() { return kProcessLimitRows; }

}  // namespace phalanx::doctor
