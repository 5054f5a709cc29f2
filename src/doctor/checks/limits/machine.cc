// What control groups and the kernel allow the job as a whole: memory, CPUs, mappings.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/examine.h"

namespace phalanx::doctor {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kGiB = 1 << 30;
// Measured: `import torch` of version 1.13 without CUDA holds 227 MiB, and newer and CUDA builds hold more.
constexpr int64_t kLeastPerRank = 128 * kMiB, kUsualPerRank = kGiB;

std::string bytes(int64_t n) { return base::format_bytes(static_cast<uint64_t>(std::max<int64_t>(n, 0))); }

struct MemoryRoom {
  int64_t limit = 0, room = 0;
};
// Only where PyTorch is what the ranks run: what others need cannot be guessed.
std::optional<MemoryRoom> memory_room(const HostView& h) {
  const machine::LimitsFacts& l = h.facts.limits;
  if (!h.probed || l.cgroup_memory_bytes <= 0 || h.ranks <= 0 || !h.facts.software.packages.count("torch")) return std::nullopt;
  return MemoryRoom{l.cgroup_memory_bytes, std::max<int64_t>(0, l.cgroup_memory_bytes - l.cgroup_memory_used_bytes)};
}
Words memory_words(const HostView& h, const MemoryRoom& m) {
  std::string limit = bytes(m.limit), room = bytes(m.room);
  return tr("{} allows {}, of which {} are free, for {} ranks", h.facts.limits.memory_cgroup, limit, room, h.ranks);
}

void memory_tiny(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (std::optional<MemoryRoom> m = memory_room(s.hosts[h]); m && m->room < kLeastPerRank * s.hosts[h].ranks)
      findings.on(h, memory_words(s.hosts[h], *m));
}
void memory_small(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (std::optional<MemoryRoom> m = memory_room(s.hosts[h]);
        m && m->room >= kLeastPerRank * s.hosts[h].ranks && m->room < kUsualPerRank * s.hosts[h].ranks)
      findings.on(h, memory_words(s.hosts[h], *m));
}

void cpuset(const Situation&, size_t h, const HostView& host, Findings& findings) {
  const machine::Machine& m = host.facts.machine;
  if (m.cpus_usable <= 0 || m.cpus_usable >= m.cpus_online || m.cpus_usable >= host.ranks) return;
  findings.on(h, tr("{} of {} CPUs are allowed ({}), for {} ranks", m.cpus_usable, m.cpus_online, host.facts.limits.cpuset, host.ranks),
              "taskset -pc $$");
}

// Equal machines of which one lends fewer CPUs.
void cpuset_differs(const Situation& s, Findings& findings) {
  int64_t most = 0, online = 0;
  std::string where;
  for (const HostView& h : s.hosts)
    if (h.probed && h.facts.machine.cpus_usable > most)
      most = h.facts.machine.cpus_usable, online = h.facts.machine.cpus_online, where = h.name;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const machine::Machine& m = s.hosts[h].facts.machine;
    if (!s.hosts[h].probed || m.cpus_usable <= 0 || m.cpus_online != online || m.cpus_usable * 2 > most) continue;
    findings.on(h, tr("{} of {} CPUs are allowed; on {} {}", m.cpus_usable, m.cpus_online, where, most));
  }
}

void cpu_quota(const Situation&, size_t h, const HostView& host, Findings& findings) {
  double quota = host.facts.limits.cpu_quota;
  if (quota <= 0 || host.ranks <= 0 || quota >= host.ranks) return;
  findings.on(h, tr("the CPU quota of the cgroup is {:g} CPUs, for {} ranks", quota, host.ranks));
}

void overcommit(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (s.hosts[h].probed && s.hosts[h].facts.limits.overcommit == 2)
      findings.on(h, tr("vm.overcommit_memory is 2"), "sudo sysctl vm.overcommit_memory=0");
}

void map_count(const Situation&, size_t h, const HostView& host, Findings& findings) {
  constexpr int64_t kDefault = 65'530;
  int64_t count = host.facts.limits.max_map_count;
  if (count <= 0 || count >= kDefault) return;
  findings.on(h, tr("vm.max_map_count is {}", count), "sudo sysctl vm.max_map_count=262144");
}

void ptrace(const Situation&, size_t h, const HostView& host, Findings& findings) {
  if (host.facts.machine.uid == 0 || host.facts.limits.ptrace_scope < 2) return;
  findings.on(h, tr("kernel.yama.ptrace_scope is {}", host.facts.limits.ptrace_scope),
              host.facts.limits.ptrace_scope == 2 ? "sudo sysctl kernel.yama.ptrace_scope=1" : "");
}

void swap(const Situation&, size_t h, const HostView& host, Findings& findings) {
  const machine::Machine& m = host.facts.machine;
  int64_t used = host.facts.limits.swap_used_bytes;
  if (used < kGiB || m.memory_available_bytes * 10 >= m.memory_bytes) return;
  findings.on(
      h, tr("{} are swapped out, and {} of {} memory is available", bytes(used), bytes(m.memory_available_bytes), bytes(m.memory_bytes)),
      "ps aux --sort -rss | head");
}

void busy(const Situation&, size_t h, const HostView& host, Findings& findings) {
  double load = host.facts.limits.load_1min;
  if (host.facts.machine.cpus_online <= 0 || load <= static_cast<double>(host.facts.machine.cpus_online)) return;
  findings.on(h, tr("load {:.1f} on {} CPUs", load, host.facts.machine.cpus_online), "top -bn1 | head -20");
}

constexpr Row kMachineLimitRows[] = {
    {"LIM-MEMORY-NONE", Severity::kError, memory_tiny},
    {"LIM-MEMORY-CGROUP", Severity::kWarning, memory_small},
    {"LIM-CPUSET", Severity::kWarning, cpuset},
    {"LIM-CPUSET-DIFFERS", Severity::kWarning, cpuset_differs},
    {"LIM-CPU-QUOTA", Severity::kWarning, cpu_quota},
    {"LIM-OVERCOMMIT", Severity::kWarning, overcommit},
    {"LIM-MAP-COUNT", Severity::kWarning, map_count},
    {"LIM-PTRACE", Severity::kNote, ptrace},
    {"LIM-SWAP", Severity::kWarning, swap},
    {"LIM-BUSY", Severity::kNote, busy},
};

}  // namespace

std::span<const Row> machine_limit_rows() { return kMachineLimitRows; }

}  // namespace phalanx::doctor
