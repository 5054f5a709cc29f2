// What control groups and the kernel allow the job as a whole: memory, CPUs, mappings.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/examine.h"
#include "doctor/rows_limits.h"

namespace doctor {
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
  const host::LimitsFacts& l = h.facts.limits;
  if (!h.probed || l.cgroup_memory_bytes <= 0 || h.ranks <= 0 || !h.facts.software.packages.count("torch")) return std::nullopt;
  return MemoryRoom{l.cgroup_memory_bytes, std::max<int64_t>(0, l.cgroup_memory_bytes - l.cgroup_memory_used_bytes)};
}
Words memory_words(const HostView& h, const MemoryRoom& m) {
  std::string limit = bytes(m.limit), room = bytes(m.room);
  return {fmt::format("{} allows {}, {} of it free, for {} ranks", h.facts.limits.memory_cgroup, limit, room, h.ranks),
          fmt::format("{} 上限 {}，剩余 {}，要容纳 {} 个 rank", h.facts.limits.memory_cgroup, limit, room, h.ranks)};
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

void cpuset(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    const host::Machine& m = host.facts.machine;
    if (!host.probed || m.cpus_usable <= 0 || m.cpus_usable >= m.cpus_online || m.cpus_usable >= host.ranks) continue;
    findings.on(
        h,
        {fmt::format("{} of {} CPUs may be used ({}), for {} ranks", m.cpus_usable, m.cpus_online, host.facts.limits.cpuset, host.ranks),
         fmt::format("{} 个 CPU 中只能使用 {} 个（{}），要跑 {} 个 rank", m.cpus_online, m.cpus_usable, host.facts.limits.cpuset,
                     host.ranks)},
        "taskset -pc $$");
  }
}

// Equal machines of which one lends fewer CPUs.
void cpuset_differs(const Situation& s, Findings& findings) {
  int64_t most = 0, online = 0;
  std::string where;
  for (const HostView& h : s.hosts)
    if (h.probed && h.facts.machine.cpus_usable > most)
      most = h.facts.machine.cpus_usable, online = h.facts.machine.cpus_online, where = h.name;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const host::Machine& m = s.hosts[h].facts.machine;
    if (!s.hosts[h].probed || m.cpus_usable <= 0 || m.cpus_online != online || m.cpus_usable * 2 > most) continue;
    findings.on(h, {fmt::format("{} of {} CPUs may be used; on {} {}", m.cpus_usable, m.cpus_online, where, most),
                    fmt::format("{} 个 CPU 中只能使用 {} 个；{} 上可用 {} 个", m.cpus_online, m.cpus_usable, where, most)});
  }
}

void cpu_quota(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    double quota = host.facts.limits.cpu_quota;
    if (!host.probed || quota <= 0 || host.ranks <= 0 || quota >= host.ranks) continue;
    findings.on(h, {fmt::format("the control group gives {:g} CPUs of time, for {} ranks", quota, host.ranks),
                    fmt::format("cgroup 只给 {:g} 个 CPU 的时间，要跑 {} 个 rank", quota, host.ranks)});
  }
}

void overcommit(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (s.hosts[h].probed && s.hosts[h].facts.limits.overcommit == 2)
      findings.on(h, {"vm.overcommit_memory is 2", "vm.overcommit_memory 为 2"}, "sudo sysctl vm.overcommit_memory=0");
}

void map_count(const Situation& s, Findings& findings) {
  constexpr int64_t kDefault = 65'530;
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    int64_t count = s.hosts[h].facts.limits.max_map_count;
    if (!s.hosts[h].probed || count <= 0 || count >= kDefault) continue;
    findings.on(h, {fmt::format("vm.max_map_count is {}", count), fmt::format("vm.max_map_count 为 {}", count)},
                "sudo sysctl vm.max_map_count=262144");
  }
}

void ptrace(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    if (!host.probed || host.facts.machine.uid == 0 || host.facts.limits.ptrace_scope < 2) continue;
    findings.on(h,
                {fmt::format("kernel.yama.ptrace_scope is {}", host.facts.limits.ptrace_scope),
                 fmt::format("kernel.yama.ptrace_scope 为 {}", host.facts.limits.ptrace_scope)},
                host.facts.limits.ptrace_scope == 2 ? "sudo sysctl kernel.yama.ptrace_scope=1" : "");
  }
}

void swap(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const host::Machine& m = s.hosts[h].facts.machine;
    int64_t used = s.hosts[h].facts.limits.swap_used_bytes;
    if (!s.hosts[h].probed || used < kGiB || m.memory_available_bytes * 10 >= m.memory_bytes) continue;
    findings.on(h,
                {fmt::format("{} are swapped out, and {} of {} memory is available", bytes(used), bytes(m.memory_available_bytes),
                             bytes(m.memory_bytes)),
                 fmt::format("已换出 {}，内存 {} 中只剩 {} 可用", bytes(used), bytes(m.memory_bytes), bytes(m.memory_available_bytes))},
                "ps aux --sort -rss | head");
  }
}

void busy(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    double load = host.facts.limits.load_1min;
    if (!host.probed || host.facts.machine.cpus_online <= 0 || load <= static_cast<double>(host.facts.machine.cpus_online)) continue;
    findings.on(h,
                {fmt::format("load {:.1f} on {} CPUs", load, host.facts.machine.cpus_online),
                 fmt::format("{} 个 CPU，负载 {:.1f}", host.facts.machine.cpus_online, load)},
                "top -bn1 | head -20");
  }
}

constexpr Row kMachineLimitRows[] = {
    {"LIM-MEMORY-NONE",
     Severity::kError,
     Group::kLimits,
     {"the memory limit cannot hold the ranks", "内存上限放不下这些 rank"},
     {"Does the control group leave 128 MiB for each rank that imports PyTorch?", "cgroup 是否为每个导入 PyTorch 的 rank 留出 128 MiB？"},
     {"The kernel ends the ranks while they import: exit code -9 or 137, no Python traceback, \"Memory cgroup out of memory: Killed "
      "process N "
      "(python)\" in the kernel log, \"Detected N oom_kill events\" from Slurm.",
      "rank 在 import 阶段就会被内核杀死：退出码 -9 或 137，没有 Python 调用栈，内核日志有 \"Memory cgroup out of memory: Killed process N "
      "(python)\"，Slurm 报 \"Detected N oom_kill events\"。"},
     {"Ask for more memory (docker --memory, Slurm --mem, the pod's limits), or start fewer ranks:\n$ cat /sys/fs/cgroup/memory.max",
      "申请更多内存（docker --memory、Slurm --mem、Pod limits），或减少 rank 数：\n$ cat /sys/fs/cgroup/memory.max"},
     "Linux Documentation/admin-guide/cgroup-v2.rst, Memory",
     memory_tiny},
    {"LIM-MEMORY-CGROUP",
     Severity::kWarning,
     Group::kLimits,
     {"the memory limit is tight for the ranks", "内存上限对这些 rank 偏紧"},
     {"Does the control group leave 1 GiB for each rank?", "cgroup 是否为每个 rank 留出 1 GiB？"},
     {"A rank with CUDA holds 1 to 2 GiB of host memory before it loads a model; DataLoader workers, pinned buffers and ZeRO offload come "
      "on top. "
      "What does not fit is killed: exit code -9, \"Memory cgroup out of memory\".",
      "带 CUDA 的 rank 在加载模型前就要占 1～2 GiB 主机内存，DataLoader worker、锁页缓冲区和 ZeRO offload 另算。放不下就会被杀：退出码 -9，"
      "\"Memory cgroup out of memory\"。"},
     {"Ask for more memory, or start fewer ranks or workers:\n$ cat /sys/fs/cgroup/memory.max",
      "申请更多内存，或减少 rank、worker 数：\n$ cat /sys/fs/cgroup/memory.max"},
     "Linux Documentation/admin-guide/cgroup-v2.rst, Memory",
     memory_small},
    {"LIM-CPUSET",
     Severity::kWarning,
     Group::kLimits,
     {"fewer CPUs than ranks", "可用 CPU 少于 rank 数"},
     {"May the job use a CPU per rank, where the machine has more?", "机器有更多 CPU 时，任务能否为每个 rank 使用一个 CPU？"},
     {"All ranks and their workers share the few CPUs of a cpuset or an affinity mask: the GPUs wait. PyTorch says \"This DataLoader will "
      "create N "
      "worker processes in total. Our suggested max number of worker in current system is M\".",
      "所有 rank 及其 worker 挤在 cpuset 或亲和性掩码给出的少数 CPU 上，GPU 只能等待。PyTorch 会提示 \"This DataLoader will create N "
      "worker "
      "processes in total. Our suggested max number of worker in current system is M\"。"},
     {"Widen it (docker --cpuset-cpus, Slurm --cpus-per-task), or start the shell without taskset:\n$ taskset -pc $$",
      "放宽限制（docker --cpuset-cpus、Slurm --cpus-per-task），或不要用 taskset 启动 shell：\n$ taskset -pc $$"},
     "sched_setaffinity(2); cpuset(7)",
     cpuset},
    {"LIM-CPUSET-DIFFERS",
     Severity::kWarning,
     Group::kLimits,
     {"equal hosts lend unequal CPUs", "相同的机器可用 CPU 数不同"},
     {"May the job use as many CPUs on each of equal hosts?", "配置相同的机器，任务可用的 CPU 数是否一致？"},
     {"The host with fewer CPUs loads data more slowly, and every other rank waits for it in each step.",
      "CPU 少的机器加载数据更慢，每一步其他 rank 都要等它。"},
     {"Compare the masks:\n$ taskset -pc $$; grep Cpus_allowed_list /proc/self/status",
      "比较掩码：\n$ taskset -pc $$; grep Cpus_allowed_list /proc/self/status"},
     "sched_setaffinity(2)",
     cpuset_differs},
    {"LIM-CPU-QUOTA",
     Severity::kWarning,
     Group::kLimits,
     {"less CPU time than ranks", "CPU 配额少于 rank 数"},
     {"Does the control group give each rank a CPU of time?", "cgroup 的 CPU 配额是否够每个 rank 用一个 CPU？"},
     {"When the quota is used up, all ranks of the host stand still until the next 100 ms: steps are slow and uneven (cpu.stat: "
      "nr_throttled).",
      "配额用完后，本机所有 rank 都要停到下一个 100 ms 周期：步时又慢又不均匀（cpu.stat 中的 nr_throttled）。"},
     {"Ask for more (docker --cpus, the pod's limits):\n$ cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu.stat",
      "申请更多 CPU（docker --cpus、Pod limits）：\n$ cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu.stat"},
     "Linux Documentation/scheduler/sched-bwc.rst",
     cpu_quota},
    {"LIM-OVERCOMMIT",
     Severity::kWarning,
     Group::kLimits,
     {"memory is not overcommitted", "禁止内存超额分配"},
     {"Is vm.overcommit_memory 0 or 1?", "vm.overcommit_memory 是否为 0 或 1？"},
     {"With 2 the kernel counts every private mapping and every fork in full: \"OSError: [Errno 12] Cannot allocate memory\" with much "
      "memory free, "
      "when DataLoader workers are forked or a model is mapped.",
      "取 2 时，内核会把每个私有映射和每次 fork 全额计算：明明还有大量内存，fork DataLoader worker 或映射模型时却报 "
      "\"OSError: [Errno 12] Cannot allocate memory\"。"},
     {"Set it back:\n$ sudo sysctl vm.overcommit_memory=0", "改回默认：\n$ sudo sysctl vm.overcommit_memory=0"},
     "Linux Documentation/mm/overcommit-accounting.rst",
     overcommit},
    {"LIM-MAP-COUNT",
     Severity::kWarning,
     Group::kLimits,
     {"few mappings are allowed", "允许的内存映射数太少"},
     {"Is vm.max_map_count at least its default, 65530?", "vm.max_map_count 是否不低于默认值 65530？"},
     {"Libraries, tensors in shared memory and mapped checkpoints are mappings: \"OSError: [Errno 12] Cannot allocate memory\" with memory "
      "free.",
      "动态库、共享内存中的张量、映射的 checkpoint 都占映射数：内存充足也会报 \"OSError: [Errno 12] Cannot allocate memory\"。"},
     {"Raise it:\n$ sudo sysctl vm.max_map_count=262144", "调高：\n$ sudo sysctl vm.max_map_count=262144"},
     "Linux Documentation/admin-guide/sysctl/vm.rst",
     map_count},
    {"LIM-PTRACE",
     Severity::kNote,
     Group::kLimits,
     {"stacks of hung ranks cannot be read", "无法读取卡住的 rank 的调用栈"},
     {"May a user attach to his own processes?", "用户能否附加到自己的进程？"},
     {"py-spy and gdb end in \"Operation not permitted\": a hang can then be seen, but not where.",
      "py-spy、gdb 会报 \"Operation not permitted\"：能发现卡住，但看不到卡在哪里。"},
     {"Allow it, or use sudo for py-spy:\n$ sudo sysctl kernel.yama.ptrace_scope=1",
      "放开，或用 sudo 运行 py-spy：\n$ sudo sysctl kernel.yama.ptrace_scope=1"},
     "Linux Documentation/admin-guide/LSM/Yama.rst",
     ptrace},
    {"LIM-SWAP",
     Severity::kWarning,
     Group::kLimits,
     {"the host is short of memory and swaps", "机器内存不足，正在使用交换区"},
     {"Is memory left, or nothing swapped out?", "内存是否充足、没有换出？"},
     {"A rank whose pages lie on disk is hundreds of times slower, and all others wait for it. Something else holds the memory.",
      "内存页在磁盘上的 rank 会慢几百倍，其他 rank 都要等它。有别的程序占着内存。"},
     {"See what holds the memory:\n$ ps aux --sort -rss | head", "查看是谁占着内存：\n$ ps aux --sort -rss | head"},
     "",
     swap},
    {"LIM-BUSY",
     Severity::kNote,
     Group::kLimits,
     {"the host is busy already", "机器已经很忙"},
     {"Is the load at most the number of CPUs?", "负载是否不超过 CPU 数？"},
     {"Something else computes here. Ranks of this host will be the slow ones.", "有其他程序在计算，这台机器上的 rank 会偏慢。"},
     {"See who it is:\n$ top -bn1 | head -20", "查看是谁：\n$ top -bn1 | head -20"},
     "",
     busy},
};

}  // namespace

std::span<const Row> machine_limit_rows() { return kMachineLimitRows; }

}  // namespace doctor
