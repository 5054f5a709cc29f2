// What makes a step slow without a GPU being at fault: threads, NUMA nodes, frequency, unequal hosts, sockets.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/text.h"
#include "doctor/rows_speed.h"
#include "doctor/settings.h"
#include "doctor/verbs.h"

namespace doctor {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// OMP_NUM_THREADS may be a list, one number per level of nesting; the first counts.
std::optional<int64_t> omp_threads(const Situation& s, size_t host) {
  std::optional<std::string> value = s.variable(host, "OMP_NUM_THREADS");
  if (!value) return std::nullopt;
  base::Result<int64_t> number = base::parse_int(base::trim(base::split(*value, ',')[0]), 1, 1 << 20);
  return number.ok() ? std::optional(*number) : std::nullopt;
}

void check_omp_many(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    int64_t cpus = s.hosts[h].facts.machine.cpus_usable, ranks = s.hosts[h].ranks;
    std::optional<int64_t> threads = omp_threads(s, h);
    if (!threads || cpus <= 0 || ranks <= 0 || *threads * ranks <= cpus || *threads == 1) continue;
    findings.on(h,
                {fmt::format("OMP_NUM_THREADS={} × {} ranks = {} threads on {} CPUs", *threads, ranks, *threads * ranks, cpus),
                 fmt::format("OMP_NUM_THREADS={} × {} 个 rank = {} 个线程，而 CPU 只有 {} 个", *threads, ranks, *threads * ranks, cpus)},
                away(s, h, "OMP_NUM_THREADS"));
  }
}

void check_omp_one(const Situation& s, Findings& findings) {
  constexpr int64_t kMany = 8;  // CPUs per rank
  for (size_t h : probed(s)) {
    int64_t cpus = s.hosts[h].facts.machine.cpus_usable, ranks = s.hosts[h].ranks;
    if (omp_threads(s, h) != 1 || ranks <= 0 || cpus / ranks < kMany) continue;
    findings.on(h,
                {fmt::format("OMP_NUM_THREADS=1, though there are {} CPUs for {} ranks", cpus, ranks),
                 fmt::format("OMP_NUM_THREADS=1，而 {} 个 rank 有 {} 个 CPU 可用", ranks, cpus)},
                away(s, h, "OMP_NUM_THREADS"));
  }
}

void check_governor(const Situation& s, Findings& findings) {
  for (const Camp& camp :
       camps(s, [](const HostView& h) { return h.facts.limits.governor.empty() ? std::nullopt : std::optional(h.facts.limits.governor); }))
    if (camp.value == "powersave" || camp.value == "conservative")
      findings.on(camp.hosts, {"scaling_governor is " + camp.value, "scaling_governor 为 " + camp.value},
                  "sudo cpupower frequency-set -g performance");
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

void check_numa(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    const host::Facts& facts = s.hosts[h].facts;
    std::set<int> allowed = cpus_in(facts.limits.cpuset);
    if (allowed.empty() || facts.machine.numa_cpus.size() < 2 || !s.job.wants_gpus) continue;
    std::vector<int> far;
    for (const host::Gpu& g : facts.gpus.devices) {
      std::set<int> near = cpus_in(g.local_cpus);
      bool reachable = std::any_of(near.begin(), near.end(), [&](int cpu) { return allowed.count(cpu) > 0; });
      if (!near.empty() && !reachable) far.push_back(static_cast<int>(g.index));
    }
    if (far.empty()) continue;
    std::string gpus = base::format_ranges(far);
    findings.on(h, {fmt::format("GPU {}: none of the CPUs near it is in the cpuset {}", gpus, facts.limits.cpuset),
                    fmt::format("GPU {}：其附近的 CPU 都不在 cpuset {} 内", gpus, facts.limits.cpuset)});
  }
}

// How many hosts have half or less of what most have.
void told_unequal(const Situation& s, Findings& findings, const char* what, const char* what_zh, int64_t unit,
                  const std::function<int64_t(const host::Machine&)>& amount) {
  std::vector<int64_t> all;
  for (size_t h : probed(s))
    if (int64_t n = amount(s.hosts[h].facts.machine); n > 0) all.push_back(n);
  if (all.size() < 2) return;
  std::sort(all.begin(), all.end());
  int64_t usual = all[all.size() / 2];  // of two the larger
  for (size_t h : probed(s))
    if (int64_t n = amount(s.hosts[h].facts.machine); n > 0 && n * 2 <= usual)
      findings.on(h, {fmt::format("{} {}; the others have {}", n / unit, what, usual / unit),
                      fmt::format("{}为 {}，其他主机为 {}", what_zh, n / unit, usual / unit)});
}

void check_unequal(const Situation& s, Findings& findings) {
  told_unequal(s, findings, "CPUs", "CPU 数", 1, [](const host::Machine& m) { return m.cpus_usable; });
  told_unequal(s, findings, "GiB of memory", "内存（GiB）", kGiB, [](const host::Machine& m) { return m.memory_bytes; });
}

void check_pxn(const Situation& s, Findings& findings) {
  if (s.single() || !uses_nccl(s)) return;
  for (size_t h : probed(s)) {
    const host::Facts& facts = s.hosts[h].facts;
    size_t ports = live_ports(facts.infiniband).size();
    if (!facts.gpus.nvswitch || ports < 2 || !is_on(s, h, "NCCL_PXN_DISABLE")) continue;
    findings.on(h,
                {fmt::format("NCCL_PXN_DISABLE is set on a machine with NVSwitch and {} active ports", ports),
                 fmt::format("机器有 NVSwitch 和 {} 个活动端口，却设置了 NCCL_PXN_DISABLE", ports)},
                away(s, h, "NCCL_PXN_DISABLE"));
  }
}

void check_socket_threads(const Situation& s, Findings& findings) {
  constexpr int64_t kOneCoreMbps = 20'000;  // about what one thread moves over TCP
  if (s.single() || !uses_nccl(s)) return;
  for (const HostView& host : s.hosts)
    if (!host.probed || verbs_usable(host.facts.infiniband)) return;
  for (size_t h : probed(s)) {
    if (setting(s, h, "NCCL_SOCKET_NTHREADS") || setting(s, h, "NCCL_NSOCKS_PERTHREAD") || setting(s, h, "NCCL_NET_PLUGIN")) continue;
    for (const host::Interface& i : s.hosts[h].facts.network.interfaces) {
      bool cloud = i.driver == "ena" || i.driver == "gve" || i.driver == "virtio_net";  // NCCL knows these by their vendor
      if (i.name != s.hosts[h].interface || cloud || i.speed_mbps <= kOneCoreMbps) continue;
      findings.on(h, {fmt::format("{} has {} Gbit/s, and no host has verbs: NCCL sends from one thread per connection", i.name,
                                  i.speed_mbps / 1000),
                      fmt::format("{} 为 {} Gbit/s，且没有主机可用 verbs：NCCL 每个连接只用一个线程发送", i.name, i.speed_mbps / 1000)});
    }
  }
}

constexpr Row kHostSpeedRows[] = {
    {"PERF-OMP-MANY",
     Severity::kWarning,
     Group::kSpeed,
     {"more OpenMP threads than CPUs", "OpenMP 线程数超过 CPU 数"},
     {"Do OMP_NUM_THREADS × ranks fit the CPUs of each host?", "每台主机上 OMP_NUM_THREADS × rank 数不超过 CPU 数吗？"},
     {"OpenMP threads spin at every barrier. With more of them than CPUs the ranks take the processors from each other and from the "
      "threads "
      "that feed the GPUs: data preparation and optimizer steps on the CPU (ZeRO-Offload) become many times slower.",
      "OpenMP 线程在每个屏障处都会自旋等待。线程数超过 CPU 数时，各 rank 会互相抢占处理器，也会抢占给 GPU 喂数据的线程：数据准备和 CPU "
      "上的优化器步骤（ZeRO-Offload）会慢许多倍。"},
     {"Leave it unset: phalanx sets CPUs / ranks.\n$ unset OMP_NUM_THREADS",
      "不要设置它，phalanx 会按 CPU 数 / rank 数设置。\n$ unset OMP_NUM_THREADS"},
     "OpenMP API specification, OMP_NUM_THREADS; GCC libgomp manual, GOMP_SPINCOUNT",
     check_omp_many},
    {"PERF-OMP-ONE",
     Severity::kNote,
     Group::kSpeed,
     {"one OpenMP thread per rank, with many CPUs idle", "每个 rank 只有一个 OpenMP 线程，许多 CPU 空闲"},
     {"Is OMP_NUM_THREADS=1 wanted, where every rank has eight CPUs or more?",
      "每个 rank 有 8 个以上 CPU 时，确实要设 OMP_NUM_THREADS=1 吗？"},
     {"torchrun sets it where nobody else has (\"Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\"), "
      "and it is "
      "often copied from there. Tensor work on the CPU, tokenizers and ZeRO-Offload then use one core per rank.",
      "torchrun 在无人设置时会设为 1（“Setting OMP_NUM_THREADS environment variable for each process to be 1 in "
      "default”），这个值常被照抄。这样 CPU "
      "上的张量运算、分词和 ZeRO-Offload 每个 rank 只用一个核。"},
     {"Leave it unset: phalanx sets CPUs / ranks.\n$ unset OMP_NUM_THREADS",
      "不要设置它，phalanx 会按 CPU 数 / rank 数设置。\n$ unset OMP_NUM_THREADS"},
     "torch/distributed/run.py",
     check_omp_one},
    {"PERF-GOVERNOR",
     Severity::kNote,
     Group::kSpeed,
     {"the CPUs save power", "CPU 处于节能模式"},
     {"Is the frequency governor of the CPUs set for speed?", "CPU 调频策略是否为性能优先？"},
     {"Under \"powersave\" the processor raises its clock late. Starting kernels and moving data take short bursts of one core, which "
      "are over "
      "before it does: a few per cent of a step, more with small models. With intel_pstate \"powersave\" is milder than its name.",
      "在 powersave 下处理器升频较慢。启动 kernel 和搬运数据都是单核上的短促突发，往往升频前就已结束：每步慢百分之几，小模型更明显。使用 "
      "intel_pstate 时，powersave 没有名字听起来那么严重。"},
     {"Set it until the next boot:\n$ sudo cpupower frequency-set -g performance",
      "设置到下次重启前有效：\n$ sudo cpupower frequency-set -g performance"},
     "Linux: Documentation/admin-guide/pm/cpufreq.rst, intel_pstate.rst",
     check_governor},
    {"PERF-NUMA",
     Severity::kWarning,
     Group::kSpeed,
     {"ranks may not use the CPUs near their GPU", "rank 不能使用其 GPU 附近的 CPU"},
     {"Does the cpuset leave CPUs on the NUMA node of every GPU?", "cpuset 是否为每块 GPU 所在的 NUMA 节点都留有 CPU？"},
     {"Every copy to such a GPU crosses the link between the processors, and so does what NCCL's proxy thread sends. A container started "
      "with "
      "--cpuset-cpus, or a job of a batch system with CPUs on one socket and GPUs on both, looks like this.",
      "发往这些 GPU 的每次拷贝都要跨越处理器之间的互联，NCCL 代理线程的发送也一样。容器用 --cpuset-cpus 启动，或批处理系统只分配了一个 "
      "CPU "
      "插槽而 GPU 分布在两个插槽上，就会这样。"},
     {"See where the GPUs are, and allow CPUs on both nodes:\n$ nvidia-smi topo -m\n$ docker update --cpuset-cpus <cpus> <container>",
      "查看 GPU 的位置，并允许使用两个节点的 CPU：\n$ nvidia-smi topo -m\n$ docker update --cpuset-cpus <cpus> <container>"},
     "Linux: Documentation/admin-guide/cgroup-v2.rst, cpuset",
     check_numa},
    {"PERF-HOSTS-UNEQUAL",
     Severity::kNote,
     Group::kSpeed,
     {"a host is much smaller than the others", "某台主机的配置远低于其他主机"},
     {"Have all hosts about the same CPUs and memory?", "各主机的 CPU 和内存大致相同吗？"},
     {"In data parallel training every step waits for the slowest rank. A host with half the CPUs prepares its batches half as fast; one "
      "with half the memory may be the only one on which the loader's workers are killed.",
      "数据并行训练中每一步都要等最慢的 rank。CPU "
      "只有一半的主机准备数据也只有一半快；内存只有一半的主机可能成为唯一一台数据加载进程被杀的机器。"},
     {"See whether it is a limit of a container, a dead memory module, or the machine itself:\n$ lscpu; free -g",
      "看看是容器限制、内存条故障，还是机器本身如此：\n$ lscpu; free -g"},
     "",
     check_unequal},
    {"PERF-PXN",
     Severity::kNote,
     Group::kSpeed,
     {"NCCL_PXN_DISABLE is left on", "NCCL_PXN_DISABLE 仍然开着"},
     {"Is PXN on, where GPUs share an NVSwitch and several network ports?", "GPU 共享 NVSwitch 且有多个网口时，PXN 是否启用？"},
     {"With PXN a GPU hands its data over NVLink to the GPU nearest to the right port, and messages of one rail are sent together. "
      "Without it "
      "all-to-all and tree collectives cross the switches of the fabric more often than they need.",
      "启用 PXN 时，GPU 会先经 NVLink 把数据交给离目标网口最近的 GPU，同一轨道的消息也会合并发送。关闭后，all-to-all "
      "和树形集合通信会更多地穿越交换网络。"},
     {"Take it away:\n$ unset NCCL_PXN_DISABLE", "去掉它：\n$ unset NCCL_PXN_DISABLE"},
     "NCCL user guide, NCCL_PXN_DISABLE; NCCL: src/graph/paths.cc",
     check_pxn},
    {"PERF-SOCKET-THREADS",
     Severity::kNote,
     Group::kSpeed,
     {"fast Ethernet, served by one thread", "高速以太网只由一个线程收发"},
     {"Where NCCL sends over TCP on a fast card, may it use more than one thread?", "NCCL 在高速网卡上走 TCP 时，是否允许使用多个线程？"},
     {"NCCL's socket transport uses the proxy thread alone, except in the clouds whose network cards it knows. One thread moves about 20 "
      "Gbit/s "
      "over TCP: a card of 25 Gbit/s or more is not filled, and the thread stands at 100 % in top.",
      "除了能识别网卡的公有云之外，NCCL 的 socket 传输只用代理线程一个线程。单线程 TCP 大约 20 Gbit/s：25 Gbit/s 以上的网卡跑不满，top "
      "中可见该线程占满一个核。"},
     {"Try more, with threads × sockets at most 64, and measure:\n$ export NCCL_SOCKET_NTHREADS=4 NCCL_NSOCKS_PERTHREAD=4",
      "适当增加（线程数 × 套接字数不超过 64）并实测：\n$ export NCCL_SOCKET_NTHREADS=4 NCCL_NSOCKS_PERTHREAD=4"},
     "NCCL: src/transport/net_socket.cc, ncclNetSocketGetNsockNthread",
     check_socket_threads},
};

}  // namespace

std::span<const Row> host_speed_rows() { return kHostSpeedRows; }

}  // namespace doctor
