// /dev/shm: where the DataLoader's workers hand over batches and NCCL's ranks of one host meet.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/rows_storage.h"

namespace doctor {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kGiB = 1 << 30;

std::string bytes(int64_t n) { return base::format_bytes(static_cast<uint64_t>(std::max<int64_t>(n, 0))); }

// In a container it is an argument of whoever starts that.
std::string larger_shm(const HostView& h) { return h.facts.machine.container.empty() ? "sudo mount -o remount,size=50% /dev/shm" : ""; }

// Linux gives tmpfs half of the memory; container engines give 64 MiB. What is far below the first is a limit that somebody set.
bool is_small(const HostView& h) {
  int64_t total = h.facts.storage.shm_total_bytes, memory = h.facts.machine.memory_bytes;
  if (total <= 0) return false;
  return memory > 0 ? total < kGiB && total < memory / 4 : total <= 64 * kMiB;
}

void shm_small(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    if (!host.probed || !is_small(host)) continue;
    std::string total = bytes(host.facts.storage.shm_total_bytes);
    findings.on(h, {fmt::format("/dev/shm holds {}", total), fmt::format("/dev/shm 只有 {}", total)}, larger_shm(host));
  }
}

void shm_missing(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const HostView& host = s.hosts[h];
    // Facts without a mount were never gathered.
    if (!host.probed || host.facts.storage.shm_present || host.facts.storage.paths.empty()) continue;
    findings.on(h, {"there is no folder /dev/shm", "没有 /dev/shm 目录"}, "sudo mkdir -p /dev/shm && sudo mount -t tmpfs tmpfs /dev/shm");
  }
}

void shm_full(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const host::StorageFacts& f = s.hosts[h].facts.storage;
    if (!s.hosts[h].probed || f.shm_total_bytes <= 0 || is_small(s.hosts[h])) continue;
    if (f.shm_free_bytes >= kGiB || f.shm_free_bytes * 10 >= f.shm_total_bytes) continue;
    std::string free = bytes(f.shm_free_bytes), total = bytes(f.shm_total_bytes), orphans = bytes(f.shm_orphan_bytes);
    Words words{fmt::format("/dev/shm has {} of {} free", free, total), fmt::format("/dev/shm 共 {}，只剩 {}", total, free)};
    if (f.shm_orphan_bytes > 0) {
      words.english += fmt::format("; {} of it was left by dead jobs", orphans);
      words.chinese += fmt::format("；其中 {} 是已结束任务的残留", orphans);
    }
    findings.on(h, words, "ls -lS /dev/shm | head");
  }
}

void shm_orphans(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const host::StorageFacts& f = s.hosts[h].facts.storage;
    if (!s.hosts[h].probed || f.shm_orphans.empty()) continue;
    std::string size = bytes(f.shm_orphan_bytes), fix = "rm";
    for (const std::string& name : f.shm_orphans) {
      if (fix.size() > 800) break;
      fix += " " + base::shell_quote("/dev/shm/" + name);
    }
    std::string first = base::shell_quote(f.shm_orphans[0]);
    findings.on(h,
                {fmt::format("{} in /dev/shm that no process here uses: {}{}", size, first, f.shm_orphans.size() > 1 ? " …" : ""),
                 fmt::format("/dev/shm 中有 {} 已无进程使用：{}{}", size, first, f.shm_orphans.size() > 1 ? " 等" : "")},
                fix);
  }
}

void remove_ipc(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    constexpr int64_t kFirstPerson = 1000;  // system users are exempt (logind.conf(5))
    const HostView& host = s.hosts[h];
    if (!host.probed || host.facts.storage.remove_ipc != true || host.facts.machine.uid < kFirstPerson) continue;
    findings.on(h, {"logind.conf says RemoveIPC=yes", "logind.conf 中 RemoveIPC=yes"});
  }
}

constexpr Row kSharedMemoryRows[] = {
    {"FS-SHM-SMALL",
     Severity::kWarning,
     Group::kStorage,
     {"shared memory is small", "共享内存太小"},
     {"Does /dev/shm hold at least 1 GiB, or a quarter of the memory?", "/dev/shm 是否至少有 1 GiB（或内存的四分之一）？"},
     {"DataLoader workers pass batches through /dev/shm, and NCCL's ranks of one host open their buffers there. When it is full a worker "
      "dies: "
      "\"DataLoader worker (pid N) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory\", or "
      "NCCL "
      "ends with \"Error: failed to extend /dev/shm/nccl-XXXXXX to N bytes, error: No space left on device (28)\". Container engines give "
      "64 "
      "MiB unless told otherwise.",
      "DataLoader 的 worker 通过 /dev/shm 传递 batch，同一台机器上的 NCCL rank 也在这里建立缓冲区。写满后 worker 会崩溃："
      "\"DataLoader worker (pid N) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared "
      "memory\"；或者 NCCL "
      "报 \"Error: failed to extend /dev/shm/nccl-XXXXXX to N bytes, error: No space left on device (28)\"。容器引擎默认只给 64 MiB。"},
     {"Give the container the host's shared memory, or a size of its own; in Kubernetes mount an emptyDir with medium: Memory at /dev/shm. "
      "On "
      "a plain machine make it larger:\n$ docker run --shm-size=16g …\n$ sudo mount -o remount,size=50% /dev/shm",
      "让容器使用宿主机的共享内存，或单独指定大小；Kubernetes 中把 medium: Memory 的 emptyDir 挂到 /dev/shm。普通机器上直接扩大：\n"
      "$ docker run --shm-size=16g …\n$ sudo mount -o remount,size=50% /dev/shm"},
     "NCCL User Guide, Troubleshooting (shared memory); torch/utils/data/dataloader.py",
     shm_small},
    {"FS-SHM-MISSING",
     Severity::kWarning,
     Group::kStorage,
     {"there is no /dev/shm", "没有 /dev/shm"},
     {"Is /dev/shm there?", "/dev/shm 是否存在？"},
     {"Shared memory of PyTorch, NCCL and Python's multiprocessing lives in /dev/shm. Without it a DataLoader with workers ends in "
      "\"FileNotFoundError: [Errno 2] No such file or directory\" or \"OSError: [Errno 38] Function not implemented\", and NCCL in \"Error "
      "while "
      "creating shared memory segment\".",
      "PyTorch、NCCL 和 Python multiprocessing 的共享内存都在 /dev/shm。没有它时，多 worker 的 DataLoader 会报 "
      "\"FileNotFoundError: [Errno 2] No such file or directory\" 或 \"OSError: [Errno 38] Function not implemented\"，NCCL 则报 "
      "\"Error while creating shared memory segment\"。"},
     {"Mount a tmpfs there:\n$ sudo mkdir -p /dev/shm && sudo mount -t tmpfs tmpfs /dev/shm",
      "在该处挂载 tmpfs：\n$ sudo mkdir -p /dev/shm && sudo mount -t tmpfs tmpfs /dev/shm"},
     "shm_overview(7)",
     shm_missing},
    {"FS-SHM-FULL",
     Severity::kWarning,
     Group::kStorage,
     {"shared memory is nearly full", "共享内存快满了"},
     {"Is a tenth of /dev/shm, or 1 GiB, free?", "/dev/shm 是否还有十分之一或 1 GiB 空闲？"},
     {"What is in /dev/shm now is lost to the new job. A worker that finds no room dies of SIGBUS (exit code -7, \"Bus error\"), not of a "
      "message.",
      "/dev/shm 中已被占用的空间，新任务用不到。worker 申请不到空间时会直接因 SIGBUS 退出（退出码 -7，\"Bus error\"），没有明确的报错。"},
     {"See what fills it, and remove what dead jobs left (FS-SHM-ORPHANS names it):\n$ ls -lS /dev/shm | head",
      "查看是什么占满了它，并删除已结束任务的残留（FS-SHM-ORPHANS 会列出）：\n$ ls -lS /dev/shm | head"},
     "torch/utils/data/dataloader.py",
     shm_full},
    {"FS-SHM-ORPHANS",
     Severity::kNote,
     Group::kStorage,
     {"dead jobs left shared memory behind", "已结束的任务留下了共享内存"},
     {"Is there a segment of NCCL, PyTorch or multiprocessing in /dev/shm that no process has mapped or open?",
      "/dev/shm 中是否有 NCCL、PyTorch 或 multiprocessing 的段已经没有任何进程映射或打开？"},
     {"A job that is killed cannot remove its segments: nccl-*, torch_*, sem.mp-*, psm_*. They keep their memory until somebody removes "
      "them or "
      "the machine restarts. A container that shares /dev/shm but not the process list has users that cannot be seen from here.",
      "任务被强杀时来不及删除自己的段：nccl-*、torch_*、sem.mp-*、psm_*。它们一直占着内存，直到有人删除或机器重启。"
      "注意：若有容器共享 /dev/shm 却不共享进程列表，从这里看不到它的使用者。"},
     {"Remove them when no container uses them:\n$ rm /dev/shm/nccl-*", "确认没有容器在用之后删除：\n$ rm /dev/shm/nccl-*"},
     "NCCL src/misc/shmutils.cc",
     shm_orphans},
    {"FS-REMOVE-IPC",
     Severity::kNote,
     Group::kStorage,
     {"shared memory is removed when the user logs out", "用户注销时共享内存会被删除"},
     {"Does logind remove a user's shared memory with his last session?", "logind 是否会在用户最后一个会话结束时删除其共享内存？"},
     {"With RemoveIPC=yes systemd-logind removes all files of a user in /dev/shm when his last session ends, also those of a job that goes "
      "on "
      "under nohup or tmux. It then fails with \"unable to open shared memory object </torch_…> in read-write mode\" or \"unlink shared "
      "memory … "
      "failed\".",
      "RemoveIPC=yes 时，用户最后一个会话一结束，systemd-logind 就会删除该用户在 /dev/shm 的全部文件，nohup 或 tmux "
      "里仍在跑的任务也不例外。"
      "之后任务报 \"unable to open shared memory object </torch_…> in read-write mode\" 或 \"unlink shared memory … failed\"。"},
     {"Turn it off, or let the user linger:\n$ sudo sed -i 's/^RemoveIPC=.*/RemoveIPC=no/' /etc/systemd/logind.conf && sudo systemctl "
      "restart "
      "systemd-logind\n$ sudo loginctl enable-linger $USER",
      "关闭该选项，或为用户开启 linger：\n$ sudo sed -i 's/^RemoveIPC=.*/RemoveIPC=no/' /etc/systemd/logind.conf && sudo systemctl restart "
      "systemd-logind\n$ sudo loginctl enable-linger $USER"},
     "logind.conf(5)",
     remove_ipc},
};

}  // namespace

std::span<const Row> shared_memory_rows() { return kSharedMemoryRows; }

}  // namespace doctor
