// What makes a step slow without a GPU being at fault: threads, NUMA nodes, frequency, unequal hosts, sockets.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/settings.h"
#include "doctor/verbs.h"

namespace phalanx::doctor {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// OMP_NUM_THREADS may be a list, one number per level of nesting; the first counts.
std::optional<int64_t> omp_threads(const Situation& s, size_t host) {
  std::optional<std::string> value = s.variable(host, "OMP_NUM_THREADS");
  if (!value) return std::nullopt;
  base::Result<int64_t> number = base::parse_int(base::trim(base::split(*value, ',')[0]), 1, 1 << 20);
  return number.ok() ? std::optional(*number) : std::nullopt;
}

void check_omp_many(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  int64_t cpus = host.facts.machine.cpus_usable, ranks = host.ranks;
  std::optional<int64_t> threads = omp_threads(s, h);
  if (!threads || cpus <= 0 || ranks <= 0 || *threads * ranks <= cpus || *threads == 1) return;
  findings.on(h, tr("OMP_NUM_THREADS={} × {} ranks = {} threads on {} CPUs", *threads, ranks, *threads * ranks, cpus),
              away(s, h, "OMP_NUM_THREADS"));
}

void check_omp_one(const Situation& s, Findings& findings) {
  constexpr int64_t kMany = 8;  // CPUs per rank
  for (size_t h : probed(s)) {
    int64_t cpus = s.hosts[h].facts.machine.cpus_usable, ranks = s.hosts[h].ranks;
    if (omp_threads(s, h) != 1 || ranks <= 0 || cpus / ranks < kMany) continue;
    findings.on(h, tr("OMP_NUM_THREADS=1, although there are {} CPUs for {} ranks", cpus, ranks), away(s, h, "OMP_NUM_THREADS"));
  }
}

void check_governor(const Situation& s, Findings& findings) {
  for (const Camp& camp :
       camps(s, [](const HostView& h) { return h.facts.limits.governor.empty() ? std::nullopt : std::optional(h.facts.limits.governor); }))
    if (camp.value == "powersave" || camp.value == "conservative")
      findings.on(camp.hosts, tr("scaling_governor is {}", camp.value), "sudo cpupower frequency-set -g performance");
}

std::set<int> cpus_in(const std::string& list) {
  std::set<int> cpus;
  for (std::string_view part : base::split(base::trim(list), ',')) {
    size_t dash = part.find('-');
    base::Result<int64_t> first = base::parse_int(part.substr(0, dash), 0, 8191);
    base::Result<int64_t> last = dash == std::string_view::npos ? first : base::parse_int(part.substr(dash + 1), 0, 8191);
    if (!first.ok() || !last.ok()) return {};
    for (int64_t cpu = *first; cpu <= *last; ++cpu) cpus.insert(static_cast<int>(cpu));
  }
  return cpus;
}

void check_numa(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  const machine::Facts& facts = host.facts;
  std::set<int> allowed = cpus_in(facts.limits.cpuset);
  if (allowed.empty() || facts.machine.numa_cpus.size() < 2 || !s.job.wants_gpus) return;
  std::vector<int> far;
  for (const machine::Gpu& g : facts.gpus.devices) {
    std::set<int> near = cpus_in(g.local_cpus);
    bool reachable = std::any_of(near.begin(), near.end(), [&](int cpu) { return allowed.count(cpu) > 0; });
    if (!near.empty() && !reachable) far.push_back(static_cast<int>(g.index));
  }
  if (far.empty()) return;
  std::string gpus = base::format_ranges(far);
  findings.on(h, tr("GPU {}: none of the CPUs near it is in the cpuset {}", gpus, facts.limits.cpuset));
}

// How many hosts have half or less of what most have.
void told_unequal(const Situation& s, Findings& findings, const Words& what, int64_t unit,
                  const std::function<int64_t(const machine::Machine&)>& amount) {
  std::vector<int64_t> all;
  for (size_t h : probed(s))
    if (int64_t n = amount(s.hosts[h].facts.machine); n > 0) all.push_back(n);
  if (all.size() < 2) return;
  std::sort(all.begin(), all.end());
  int64_t usual = all[all.size() / 2];  // of two the larger
  for (size_t h : probed(s))
    if (int64_t n = amount(s.hosts[h].facts.machine); n > 0 && n * 2 <= usual)
      findings.on(h, tr("{} {}; the others have {}", n / unit, what, usual / unit));
}

void check_unequal(const Situation& s, Findings& findings) {
  told_unequal(s, findings, tr("CPUs"), 1, [](const machine::Machine& m) { return m.cpus_usable; });
  told_unequal(s, findings, tr("GiB of memory"), kGiB, [](const machine::Machine& m) { return m.memory_bytes; });
}

void check_pxn(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  if (s.single() || !uses_nccl(s)) return;
  const machine::Facts& facts = host.facts;
  size_t ports = live_ports(facts.infiniband).size();
  if (!facts.gpus.nvswitch || ports < 2 || !is_on(s, h, "NCCL_PXN_DISABLE")) return;
  findings.on(h, tr("NCCL_PXN_DISABLE is set on a machine with NVSwitch and {} active ports", ports), away(s, h, "NCCL_PXN_DISABLE"));
}

void check_socket_threads(const Situation& s, Findings& findings) {
  constexpr int64_t kOneCoreMbps = 20'000;  // about what one thread moves over TCP
  if (s.single() || !uses_nccl(s)) return;
  for (const HostView& host : s.hosts)
    if (!host.probed || verbs_usable(host.facts.infiniband)) return;
  for (size_t h : probed(s)) {
    if (setting(s, h, "NCCL_SOCKET_NTHREADS") || setting(s, h, "NCCL_NSOCKS_PERTHREAD") || setting(s, h, "NCCL_NET_PLUGIN")) continue;
    for (const machine::Interface& i : s.hosts[h].facts.network.interfaces) {
      bool cloud = i.driver == "ena" || i.driver == "gve" || i.driver == "virtio_net";  // NCCL knows these by their vendor
      if (i.name != s.hosts[h].interface || cloud || i.speed_mbps <= kOneCoreMbps) continue;
      findings.on(h, tr("{} has {} Gbit/s, and no host has verbs: NCCL sends from one thread per connection", i.name, i.speed_mbps / 1000));
    }
  }
}

constexpr Row kHostSpeedRows[] = {
    {"PERF-OMP-MANY", Severity::kWarning, check_omp_many},
    {"PERF-OMP-ONE", Severity::kNote, check_omp_one},
    {"PERF-GOVERNOR", Severity::kNote, check_governor},
    {"PERF-NUMA", Severity::kWarning, check_numa},
    {"PERF-HOSTS-UNEQUAL", Severity::kNote, check_unequal},
    {"PERF-PXN", Severity::kNote, check_pxn},
    {"PERF-SOCKET-THREADS", Severity::kNote, check_socket_threads},
};

}  // namespace

std::span<const Row> host_speed_rows() { return kHostSpeedRows; }

}  // namespace phalanx::doctor
