// What a rank inherits: open files, processes, locked memory, stack, sizes.
#include "doctor/rows_limits.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/examine.h"

namespace doctor {
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
    const host::LimitsFacts& l = s.hosts[h].facts.limits;
    if (!s.hosts[h].probed || l.nofile <= 0 || l.nofile >= need) continue;
    findings.on(
        h,
        {fmt::format("{} files may be open (hard limit {}); {} may need {}", l.nofile, l.nofile_hard,
                     s.job.world > 0 ? fmt::format("{} ranks", s.job.world) : "a rank", need),
         fmt::format("最多打开 {} 个文件（硬限制 {}）；{} 个 rank 可能需要 {}", l.nofile, l.nofile_hard, std::max(1, s.job.world), need)},
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
    findings.on(h,
                {fmt::format("{} files may be open; on {} {}", own, where, most == INT64_MAX ? "any number" : std::to_string(most)),
                 fmt::format("最多打开 {} 个文件；{} 上为 {}", own, where, most == INT64_MAX ? "不限" : std::to_string(most))},
                raise(s, s.hosts[h], "n", "nofile", "1048576", 0));
  }
}

// Threads of a rank: its libraries' pools, NCCL's proxies, loader workers. With less than this some library fails to start one.
constexpr int64_t kThreadsPerRank = 64;

// root is exempt from RLIMIT_NPROC (kernel/fork.c: CAP_SYS_RESOURCE).
std::optional<int64_t> user_room(const HostView& h) {
  const host::LimitsFacts& l = h.facts.limits;
  if (!h.probed || l.nproc <= 0 || l.nproc_used <= 0 || h.facts.machine.uid == 0) return std::nullopt;
  return std::max<int64_t>(0, l.nproc - l.nproc_used);
}
std::optional<int64_t> cgroup_room(const HostView& h) {
  const host::LimitsFacts& l = h.facts.limits;
  if (!h.probed || l.pids_max <= 0) return std::nullopt;
  return std::max<int64_t>(0, l.pids_max - l.pids_used);
}

void nproc(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    std::optional<int64_t> room = user_room(host);
    if (!room || *room >= kThreadsPerRank * std::max(1, host.ranks)) continue;
    const host::LimitsFacts& l = host.facts.limits;
    findings.on(
        h,
        {fmt::format("user {} may have {} threads and has {}; {} ranks start here", host.facts.machine.user, l.nproc, l.nproc_used,
                     host.ranks),
         fmt::format("用户 {} 最多 {} 个线程，已用 {}；这里要启动 {} 个 rank", host.facts.machine.user, l.nproc, l.nproc_used, host.ranks)},
        raise(s, host, "u", "nproc", "unlimited", l.nproc_hard));
  }
}

void pids_max(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    std::optional<int64_t> room = cgroup_room(host);
    if (!room || *room >= kThreadsPerRank * std::max(1, host.ranks)) continue;
    const host::LimitsFacts& l = host.facts.limits;
    findings.on(h,
                {fmt::format("{} allows {} tasks and has {}; {} ranks start here", l.pids_cgroup, l.pids_max, l.pids_used, host.ranks),
                 fmt::format("{} 允许 {} 个任务，已有 {}；这里要启动 {} 个 rank", l.pids_cgroup, l.pids_max, l.pids_used, host.ranks)},
                fmt::format("echo max | sudo tee {}/pids.max", l.pids_cgroup));
  }
}

// Two processes per rank at least: itself and whatever it starts.
void no_room(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    if (host.ranks <= 0) continue;
    for (auto [room, what, chinese] :
         {std::tuple(user_room(host), "RLIMIT_NPROC", "RLIMIT_NPROC"), {cgroup_room(host), "pids.max", "pids.max"}}) {
      if (!room || *room >= host.ranks) continue;
      findings.on(h, {fmt::format("{} leaves room for {} processes; {} ranks start here", what, *room, host.ranks),
                      fmt::format("{} 只剩 {} 个进程的余量；这里要启动 {} 个 rank", chinese, *room, host.ranks)});
    }
  }
}

bool has_infiniband(const Situation& s, size_t h) {
  if (s.variable(h, "NCCL_IB_DISABLE") == "1") return false;
  for (const host::IbDevice& device : s.hosts[h].facts.infiniband.devices)
    for (const host::IbPort& port : device.ports)
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
      findings.on(h,
                  {fmt::format("{} may be locked; InfiniBand is up", bytes(*limit)),
                   fmt::format("只能锁定 {} 内存，而 InfiniBand 已启用", bytes(*limit))},
                  kUnlock);
}
void memlock_low(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (std::optional<int64_t> limit = lockable(s, h); limit && *limit >= kTooLittle && *limit < kEnough)
      findings.on(h,
                  {fmt::format("{} may be locked; InfiniBand is up", bytes(*limit)),
                   fmt::format("只能锁定 {} 内存，而 InfiniBand 已启用", bytes(*limit))},
                  kUnlock);
}

// "2.20.5+cuda12.4" → 2020. NCCL from 2.30 on chooses a finite size itself ("Stack size limit (unlimited) is unsafe").
int version_number(const std::string& version) {
  std::vector<std::string_view> f = base::split(version, '.');
  if (f.size() < 2) return 0;
  base::Result<int64_t> major = base::parse_int(f[0], 0, 99), minor = base::parse_int(f[1], 0, 999);
  return major.ok() && minor.ok() ? static_cast<int>(*major * 1000 + *minor) : 0;
}

void stack_unlimited(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    if (!host.probed || host.facts.limits.stack != -1 || host.facts.software.nccl.empty() || !s.job.wants_gpus) continue;
    std::string version = host.facts.software.nccl[0].version;
    int number = version_number(version);
    if (number == 0 || number >= 2030) continue;
    findings.on(h,
                {fmt::format("ulimit -s is unlimited, NCCL is {}", version), fmt::format("ulimit -s 为 unlimited，NCCL 版本 {}", version)},
                s.single() ? "ulimit -s 8192" : raise(s, host, "s", "stack", "8192", 0));
  }
}

void file_size(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const host::LimitsFacts& l = s.hosts[h].facts.limits;
    if (!s.hosts[h].probed || l.file_size <= 0) continue;
    findings.on(h, {fmt::format("a file may grow to {}", bytes(l.file_size)), fmt::format("单个文件最大 {}", bytes(l.file_size))},
                raise(s, s.hosts[h], "f", "fsize", "unlimited", -1));
  }
}

void address_space(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const host::LimitsFacts& l = s.hosts[h].facts.limits;
    if (!s.hosts[h].probed || l.address_space <= 0) continue;
    findings.on(h,
                {fmt::format("a process may map {}", bytes(l.address_space)), fmt::format("单个进程最多映射 {}", bytes(l.address_space))},
                raise(s, s.hosts[h], "v", "as", "unlimited", -1));
  }
}

constexpr Row kProcessLimitRows[] = {
    {"LIM-NOFILE",
     Severity::kWarning,
     Group::kLimits,
     {"few files may be open", "可打开的文件数太少"},
     {"May a rank open at least 1024 files, and eight per rank of the job?",
      "每个 rank 能否打开至少 1024 个文件，并且不少于 rank 总数的八倍？"},
     {"Every socket, pipe and shared tensor is a file: \"OSError: [Errno 24] Too many open files\", \"RuntimeError: received 0 items of "
      "ancdata\", "
      "\"unable to open shared memory object </torch_…> in read-write mode\", NCCL \"Call to socket failed: Too many open files\". The "
      "limit of "
      "an ssh session, of a systemd service and of a container can differ on one machine.",
      "每个 socket、管道和共享张量都占一个文件：\"OSError: [Errno 24] Too many open files\"、\"RuntimeError: received 0 items of "
      "ancdata\"、"
      "\"unable to open shared memory object </torch_…> in read-write mode\"、NCCL \"Call to socket failed: Too many open files\"。"
      "同一台机器上 ssh 会话、systemd 服务和容器的限制可能各不相同。"},
     {"Raise it in the shell that starts the job, or for all users (then log in anew):\n$ ulimit -n 65536\n$ echo '* - nofile 1048576' | "
      "sudo tee "
      "/etc/security/limits.d/90-nofile.conf",
      "在启动任务的 shell 里调高，或为所有用户设置（之后重新登录）：\n$ ulimit -n 65536\n$ echo '* - nofile 1048576' | sudo tee "
      "/etc/security/limits.d/90-nofile.conf"},
     "getrlimit(2); torch/multiprocessing (sharing strategy file_descriptor); NCCL User Guide, Troubleshooting",
     nofile},
    {"LIM-NOFILE-DIFFERS",
     Severity::kWarning,
     Group::kLimits,
     {"one host allows far fewer open files", "某台机器的打开文件数限制明显偏低"},
     {"Do all hosts allow about as many open files?", "各机器允许打开的文件数是否相近？"},
     {"What runs on the others fails here, late: \"Too many open files\" after hours, when workers and connections have added up.",
      "其他机器上正常的任务，会在这台机器上跑几个小时、worker 和连接累积之后报 \"Too many open files\"。"},
     {"Set the same limit, and log in anew:\n$ echo '* - nofile 1048576' | sudo tee /etc/security/limits.d/90-nofile.conf",
      "设成一致，然后重新登录：\n$ echo '* - nofile 1048576' | sudo tee /etc/security/limits.d/90-nofile.conf"},
     "limits.conf(5)",
     nofile_differs},
    {"LIM-NPROC",
     Severity::kWarning,
     Group::kLimits,
     {"the user may start few threads", "用户可用的线程数太少"},
     {"Are 64 threads per rank left to the user?", "该用户是否还能为每个 rank 创建 64 个线程？"},
     {"\"BlockingIOError: [Errno 11] Resource temporarily unavailable\", \"RuntimeError: can't start new thread\", \"OpenBLAS "
      "blas_thread_init: "
      "pthread_create failed\". The limit counts all threads of the user on the machine, also those of his other jobs.",
      "\"BlockingIOError: [Errno 11] Resource temporarily unavailable\"、\"RuntimeError: can't start new thread\"、\"OpenBLAS "
      "blas_thread_init: "
      "pthread_create failed\"。该限制统计的是该用户在本机的全部线程，包括其他任务的。"},
     {"Raise it:\n$ ulimit -u unlimited\n$ echo '* - nproc unlimited' | sudo tee /etc/security/limits.d/95-nproc.conf",
      "调高限制：\n$ ulimit -u unlimited\n$ echo '* - nproc unlimited' | sudo tee /etc/security/limits.d/95-nproc.conf"},
     "getrlimit(2): RLIMIT_NPROC",
     nproc},
    {"LIM-PIDS-MAX",
     Severity::kWarning,
     Group::kLimits,
     {"the control group allows few tasks", "cgroup 允许的任务数太少"},
     {"Are 64 tasks per rank left under pids.max?", "pids.max 下是否还能为每个 rank 创建 64 个任务？"},
     {"As LIM-NPROC, and the kernel log says \"cgroup: fork rejected by pids controller\". Containers and systemd services set it.",
      "现象同 LIM-NPROC，内核日志有 \"cgroup: fork rejected by pids controller\"。通常由容器或 systemd 服务设置。"},
     {"Start the container with --pids-limit -1, set TasksMax=infinity for the service, or:\n$ echo max | sudo tee "
      "/sys/fs/cgroup/…/pids.max",
      "启动容器时加 --pids-limit -1，服务设 TasksMax=infinity，或者：\n$ echo max | sudo tee /sys/fs/cgroup/…/pids.max"},
     "Linux Documentation/admin-guide/cgroup-v2.rst, PID",
     pids_max},
    {"LIM-NO-PROCESSES",
     Severity::kError,
     Group::kLimits,
     {"the ranks cannot be started", "无法启动所有 rank"},
     {"Is there room for one process per rank?", "是否还能为每个 rank 创建一个进程？"},
     {"fork fails with EAGAIN, \"Resource temporarily unavailable\": not all ranks of this host would start.",
      "fork 会返回 EAGAIN（\"Resource temporarily unavailable\"）：本机的 rank 无法全部启动。"},
     {"End what is not needed, or raise the limit (LIM-NPROC, LIM-PIDS-MAX):\n$ ps -eLf --sort user | awk '{print $1}' | sort | uniq -c",
      "结束不需要的进程，或调高限制（LIM-NPROC、LIM-PIDS-MAX）：\n$ ps -eLf --sort user | awk '{print $1}' | sort | uniq -c"},
     "fork(2): EAGAIN",
     no_room},
    {"LIM-MEMLOCK",
     Severity::kError,
     Group::kLimits,
     {"too little memory may be locked for InfiniBand", "可锁定内存太少，InfiniBand 无法使用"},
     {"May a user lock 16 MiB where NCCL would use InfiniBand?", "在 NCCL 会使用 InfiniBand 的机器上，用户能否锁定 16 MiB 内存？"},
     {"Buffers are pinned for the HCA, and count against RLIMIT_MEMLOCK: \"NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate "
      "memory\", "
      "\"Call to ibv_create_cq failed\". The defaults are 64 KiB or 8 MiB.",
      "HCA 使用的缓冲区要锁定在内存里，计入 RLIMIT_MEMLOCK：\"NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\"、"
      "\"Call to ibv_create_cq failed\"。系统默认只有 64 KiB 或 8 MiB。"},
     {"Lift it and log in anew; docker: --ulimit memlock=-1; systemd: LimitMEMLOCK=infinity:\n$ printf '* soft memlock unlimited\\n* hard "
      "memlock "
      "unlimited\\n' | sudo tee /etc/security/limits.d/95-memlock.conf",
      "放开限制后重新登录；docker 加 --ulimit memlock=-1，systemd 设 LimitMEMLOCK=infinity：\n$ printf '* soft memlock unlimited\\n* hard "
      "memlock "
      "unlimited\\n' | sudo tee /etc/security/limits.d/95-memlock.conf"},
     "NCCL User Guide, Troubleshooting; ibv_reg_mr(3)",
     memlock},
    {"LIM-MEMLOCK-LOW",
     Severity::kWarning,
     Group::kLimits,
     {"little memory may be locked for InfiniBand", "可锁定内存偏少"},
     {"May a user lock 4 GiB where NCCL would use InfiniBand?", "在 NCCL 会使用 InfiniBand 的机器上，用户能否锁定 4 GiB 内存？"},
     {"NCCL's buffers grow with channels and peers: small jobs work, larger ones fail with \"ibv_reg_mr failed … Cannot allocate memory\".",
      "NCCL 的缓冲区随 channel 和对端数增长：小任务能跑，大任务会报 \"ibv_reg_mr failed … Cannot allocate memory\"。"},
     {"Lift it as for LIM-MEMLOCK:\n$ ulimit -l unlimited", "同 LIM-MEMLOCK，放开限制：\n$ ulimit -l unlimited"},
     "NCCL User Guide, Troubleshooting",
     memlock_low},
    {"LIM-STACK-UNLIMITED",
     Severity::kWarning,
     Group::kLimits,
     {"an unlimited stack gives threads small ones", "栈不限反而使线程栈变小"},
     {"Is the stack's limit finite where NCCL is older than 2.30?", "NCCL 低于 2.30 时，栈限制是否为有限值？"},
     {"With ulimit -s unlimited the C library gives new threads 2 MiB instead of 8. NCCL's search for a topology recurses in such a thread "
      "and can "
      "overrun it: SIGSEGV at init, on large machines only. NCCL 2.30 says \"Stack size limit (unlimited) is unsafe; will use 8192KB\" and "
      "goes on.",
      "ulimit -s unlimited 时，C 库给新线程的栈是 2 MiB 而不是 8 MiB。NCCL 的拓扑搜索在线程里递归，可能栈溢出：只在大规模机器上初始化时 "
      "SIGSEGV。"
      "NCCL 2.30 会提示 \"Stack size limit (unlimited) is unsafe; will use 8192KB\" 并自行处理。"},
     {"Set it back before the job:\n$ ulimit -s 8192", "启动任务前改回：\n$ ulimit -s 8192"},
     "NVIDIA/nccl issue 2186; NCCL User Guide, Troubleshooting (stack size)",
     stack_unlimited},
    {"LIM-FILE-SIZE",
     Severity::kWarning,
     Group::kLimits,
     {"files may not grow freely", "文件大小受限"},
     {"Is the size of files unlimited?", "文件大小是否不受限？"},
     {"A checkpoint that reaches the limit ends the rank by SIGXFSZ (exit code -25) or with \"OSError: [Errno 27] File too large\".",
      "checkpoint 达到上限时，rank 会因 SIGXFSZ 退出（退出码 -25），或报 \"OSError: [Errno 27] File too large\"。"},
     {"Lift it:\n$ ulimit -f unlimited", "放开限制：\n$ ulimit -f unlimited"},
     "getrlimit(2): RLIMIT_FSIZE",
     file_size},
    {"LIM-ADDRESS-SPACE",
     Severity::kWarning,
     Group::kLimits,
     {"a process may not map freely", "进程地址空间受限"},
     {"Is the address space of processes unlimited?", "进程地址空间是否不受限？"},
     {"CUDA reserves address space for all GPU and host memory at once, far more than it uses: \"CUDA error: out of memory\" at init, or "
      "\"failed to "
      "map segment from shared object\" while libraries are loaded.",
      "CUDA 初始化时会按全部显存和内存预留地址空间，远大于实际使用：初始化报 \"CUDA error: out of memory\"，或加载库时报 "
      "\"failed to map segment from shared object\"。"},
     {"Lift it:\n$ ulimit -v unlimited", "放开限制：\n$ ulimit -v unlimited"},
     "getrlimit(2): RLIMIT_AS",
     address_space},
};

}  // namespace

std::span<const Row> process_limit_rows() { return kProcessLimitRows; }

std::span<const Row> limits_rows() {
  static const std::vector<Row> kAll = [] {
    std::vector<Row> all;
    for (auto* rows : {process_limit_rows, machine_limit_rows})
      for (const Row& row : rows()) all.push_back(row);
    return all;
  }();
  return kAll;
}

}  // namespace doctor
