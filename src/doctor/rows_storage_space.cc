// Room and permission where the job writes.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/rows_storage.h"

namespace doctor {
namespace {

constexpr int64_t kGiB = 1 << 30;
constexpr int64_t kSlow_ns = 500'000'000;

std::string bytes(int64_t n) { return base::format_bytes(static_cast<uint64_t>(std::max<int64_t>(n, 0))); }

bool refused(const host::PathFact& f) { return f.writable == false; }
bool no_space(const host::PathFact& f) { return refused(f) && (contains(f.error, "No space left") || contains(f.error, "quota exceeded")); }
bool no_inodes(const host::PathFact& f) { return refused(f) && contains(f.error, "No space left") && f.inodes > 0 && f.free_inodes == 0; }
bool read_only(const host::PathFact& f) { return refused(f) && (f.read_only || contains(f.error, "Read-only")); }

void disk_full(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const host::PathFact& f) {
    if (f.role != "output" || !no_space(f) || no_inodes(f)) return;
    std::string free = bytes(f.free_bytes);
    findings.on(h,
                {fmt::format("{} ({}) on {}: {}; {} free", f.path, f.named_by, f.mount_point, f.error, free),
                 fmt::format("{}（{}）位于 {}：{}；剩余 {}", f.path, f.named_by, f.mount_point, f.error, free)},
                "du -xh --max-depth=2 " + base::shell_quote(f.mount_point) + " | sort -h | tail");
  });
}

void inodes_full(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const host::PathFact& f) {
    if (f.role != "output" || !no_inodes(f)) return;
    std::string free = bytes(f.free_bytes);
    findings.on(h,
                {fmt::format("{} ({}) on {}: 0 of {} inodes free, though {} are", f.path, f.named_by, f.mount_point, f.inodes, free),
                 fmt::format("{}（{}）位于 {}：{} 个 inode 已用尽，但空间还剩 {}", f.path, f.named_by, f.mount_point, f.inodes, free)},
                "du --inodes -x --max-depth=2 " + base::shell_quote(f.mount_point) + " | sort -n | tail");
  });
}

void read_only_output(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const host::PathFact& f) {
    if (f.role != "output" || !read_only(f)) return;
    findings.on(h,
                {fmt::format("{} ({}) is on {}, mounted read-only", f.path, f.named_by, f.mount_point),
                 fmt::format("{}（{}）所在的 {} 以只读方式挂载", f.path, f.named_by, f.mount_point)},
                "sudo mount -o remount,rw " + base::shell_quote(f.mount_point));
  });
}

void not_writable(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const host::PathFact& f) {
    if (f.role != "output" || !refused(f) || no_space(f) || read_only(f) || is_hung(s, h, f.path)) return;
    const host::Machine& m = s.hosts[h].facts.machine;
    bool permission = contains(f.error, "denied") || contains(f.error, "not permitted");
    findings.on(h,
                {fmt::format("{} ({}), as user {}: {}", f.path, f.named_by, m.user, f.error),
                 fmt::format("{}（{}），用户 {}：{}", f.path, f.named_by, m.user, f.error)},
                permission ? fmt::format("sudo install -d -o {} {}", base::shell_quote(m.user), base::shell_quote(f.path)) : "");
  });
}

void scratch(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const host::PathFact& f) {
    if (f.role != "tmp" || !refused(f)) return;
    findings.on(h, {fmt::format("{} ({}): {}", f.path, f.named_by, f.error), fmt::format("{}（{}）：{}", f.path, f.named_by, f.error)});
  });
}

bool is_variable(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
}

// A default folder matters only to who has PyTorch; one that the user names matters always.
void cache(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const host::PathFact& f) {
    if (f.role != "cache" || !refused(f)) return;
    if (!is_variable(f.named_by) && !s.hosts[h].facts.software.packages.count("torch")) return;
    findings.on(h, {fmt::format("{} ({}): {}", f.path, f.named_by, f.error), fmt::format("{}（{}）：{}", f.path, f.named_by, f.error)});
  });
}

void disk_low(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const host::PathFact& f) {
    if ((f.role != "output" && f.role != "tmp") || f.total_bytes <= 0 || no_space(f)) return;
    int64_t enough = f.role == "output" ? 20 * kGiB : kGiB;
    if (f.free_bytes * 20 >= f.total_bytes || f.free_bytes >= enough) return;
    std::string free = bytes(f.free_bytes), total = bytes(f.total_bytes);
    findings.on(h,
                {fmt::format("{} ({}): {} of {} free on {}", f.path, f.named_by, free, total, f.mount_point),
                 fmt::format("{}（{}）：{} 共 {}，只剩 {}", f.path, f.named_by, f.mount_point, total, free)},
                "du -xh --max-depth=2 " + base::shell_quote(f.mount_point) + " | sort -h | tail");
  });
}

void inodes_low(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const host::PathFact& f) {
    if ((f.role != "output" && f.role != "cache") || f.inodes <= 0 || no_inodes(f)) return;
    constexpr int64_t kEnough = 10'000;
    if (f.free_inodes * 100 >= f.inodes || f.free_inodes >= kEnough) return;
    findings.on(h,
                {fmt::format("{} ({}): {} of {} inodes free on {}", f.path, f.named_by, f.free_inodes, f.inodes, f.mount_point),
                 fmt::format("{}（{}）：{} 共 {} 个 inode，只剩 {}", f.path, f.named_by, f.mount_point, f.inodes, f.free_inodes)},
                "du --inodes -x --max-depth=2 " + base::shell_quote(f.mount_point) + " | sort -n | tail");
  });
}

void slow_write(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"output"})) {
    std::vector<int64_t> times;
    for (const auto& [h, f] : p.seen)
      if (f->write_ns > 0) times.push_back(f->write_ns);
    if (times.size() < 2) continue;
    std::sort(times.begin(), times.end());
    int64_t usual = times[(times.size() - 1) / 2];
    for (const auto& [h, f] : p.seen) {
      if (f->write_ns < kSlow_ns || f->write_ns < 10 * usual) continue;
      std::string own = base::format_duration(std::chrono::nanoseconds(f->write_ns));
      std::string others = base::format_duration(std::chrono::nanoseconds(usual));
      findings.on(h, {fmt::format("64 KiB written and synced in {} took {}; elsewhere {}", f->path, own, others),
                      fmt::format("在 {} 写入并同步 64 KiB 用了 {}；其他机器为 {}", f->path, own, others)});
    }
  }
}

constexpr Row kSpaceRows[] = {
    {"FS-DISK-FULL",
     Severity::kError,
     Group::kStorage,
     {"no space where the job writes", "任务输出位置没有空间"},
     {"Can a file of 64 KiB be made, written and synced where the job writes?", "能否在任务的输出位置创建、写入并同步一个 64 KiB 的文件？"},
     {"The job runs until its first checkpoint and dies there: \"OSError: [Errno 28] No space left on device\", \"PytorchStreamWriter "
      "failed "
      "writing file\", \"Disk quota exceeded\" (122). Sharded checkpoints (ZeRO, FSDP) are written by every host.",
      "任务会一直跑到第一次保存 checkpoint 才失败：\"OSError: [Errno 28] No space left on device\"、\"PytorchStreamWriter failed writing "
      "file\"、"
      "\"Disk quota exceeded\"（122）。分片 checkpoint（ZeRO、FSDP）每台机器都要写。"},
     {"Make room, or name another folder:\n$ du -xh --max-depth=2 / | sort -h | tail\n$ quota -s",
      "腾出空间，或换一个输出目录：\n$ du -xh --max-depth=2 / | sort -h | tail\n$ quota -s"},
     "write(2): ENOSPC, EDQUOT",
     disk_full},
    {"FS-INODES-FULL",
     Severity::kError,
     Group::kStorage,
     {"no inodes where the job writes", "任务输出位置的 inode 已用尽"},
     {"Are inodes left where the job writes?", "任务输出位置是否还有空闲 inode？"},
     {"A file system can have space and still take no new file: \"No space left on device\" while df -h shows plenty. Millions of small "
      "files "
      "(data sets, caches, logs) use up the inodes.",
      "文件系统有空间也可能建不了新文件：df -h 显示充足，却报 \"No space left on device\"。大量小文件（数据集、缓存、日志）会耗尽 inode。"},
     {"Find and remove the many small files, or name a folder on another file system:\n$ df -i\n$ du --inodes -x --max-depth=2 / | sort -n "
      "| tail",
      "找出并清理大量小文件，或换到另一个文件系统：\n$ df -i\n$ du --inodes -x --max-depth=2 / | sort -n | tail"},
     "statvfs(3): f_favail",
     inodes_full},
    {"FS-READ-ONLY",
     Severity::kError,
     Group::kStorage,
     {"the job's output is on a read-only file system", "输出目录所在文件系统是只读的"},
     {"Is the file system of the output mounted for writing?", "输出目录的文件系统是否可写挂载？"},
     {"Every write fails with \"OSError: [Errno 30] Read-only file system\". A disk that was writable once and is no longer has probably "
      "failed: "
      "the kernel log says \"EXT4-fs error … Remounting filesystem read-only\".",
      "所有写入都会报 \"OSError: [Errno 30] Read-only file system\"。原本可写、后来变成只读的磁盘多半出了故障：内核日志会有 "
      "\"EXT4-fs error … Remounting filesystem read-only\"。"},
     {"Look into the kernel log first; remount only what was mounted so on purpose:\n$ sudo dmesg | grep -i 'remount\\|I/O error' | "
      "tail\n$ sudo mount -o remount,rw <mount point>",
      "先看内核日志；只有当初有意只读挂载的才可以重新挂载：\n$ sudo dmesg | grep -i 'remount\\|I/O error' | tail\n$ sudo mount -o "
      "remount,rw <mount point>"},
     "write(2): EROFS",
     read_only_output},
    {"FS-NOT-WRITABLE",
     Severity::kError,
     Group::kStorage,
     {"the job may not write its output", "任务无权写入输出目录"},
     {"May the job's user make a file where the job writes?", "运行任务的用户能否在输出位置创建文件？"},
     {"\"PermissionError: [Errno 13] Permission denied\" at the first checkpoint or log. Usual causes: another numeric user id on this "
      "host, NFS "
      "root squash, a folder made by root or by a container.",
      "第一次保存或写日志时报 \"PermissionError: [Errno 13] Permission denied\"。常见原因：本机用户的数字 uid 不同、NFS root squash、"
      "目录由 root 或容器创建。"},
     {"Give the folder to the user, or choose another:\n$ ls -ldn <path>; id\n$ sudo chown -R $USER <path>",
      "把目录交给该用户，或换一个目录：\n$ ls -ldn <path>; id\n$ sudo chown -R $USER <path>"},
     "open(2): EACCES",
     not_writable},
    {"FS-TMP-NOT-WRITABLE",
     Severity::kWarning,
     Group::kStorage,
     {"temporary files cannot be made", "无法创建临时文件"},
     {"Can a file be made in $TMPDIR or /tmp?", "能否在 $TMPDIR 或 /tmp 中创建文件？"},
     {"Python falls back to other folders and, if none works, says \"FileNotFoundError: [Errno 2] No usable temporary directory found\". "
      "Compilers of Triton and of extensions, and multiprocessing, need it too.",
      "Python 会尝试其他目录，都不行时报 \"FileNotFoundError: [Errno 2] No usable temporary directory found\"。"
      "Triton、扩展的编译以及 multiprocessing 也都需要它。"},
     {"Make room there, or point TMPDIR at a folder of this host:\n$ df -h /tmp; ls -ld /tmp\n$ export TMPDIR=/var/tmp",
      "清理空间，或把 TMPDIR 指到本机的其他目录：\n$ df -h /tmp; ls -ld /tmp\n$ export TMPDIR=/var/tmp"},
     "Python tempfile.gettempdir",
     scratch},
    {"FS-CACHE-NOT-WRITABLE",
     Severity::kWarning,
     Group::kStorage,
     {"a cache folder cannot be written", "缓存目录不可写"},
     {"Can the caches of HuggingFace, PyTorch and Triton be written?", "HuggingFace、PyTorch、Triton 的缓存目录是否可写？"},
     {"Downloads, compiled kernels and extensions go there: \"PermissionError: [Errno 13] Permission denied: '/.cache'\", \"There was a "
      "problem "
      "when trying to write in your cache folder\". A container that runs as a user without a home is the usual case.",
      "下载的模型、编译出的 kernel 和扩展都放在这里：\"PermissionError: [Errno 13] Permission denied: '/.cache'\"、\"There was a problem "
      "when trying "
      "to write in your cache folder\"。常见于以没有 home 的用户运行的容器。"},
     {"Point the caches at a folder that the user owns:\n$ export HF_HOME=<folder>/hf XDG_CACHE_HOME=<folder> TRITON_CACHE_DIR=/tmp/triton",
      "把缓存指到该用户拥有的目录：\n$ export HF_HOME=<folder>/hf XDG_CACHE_HOME=<folder> TRITON_CACHE_DIR=/tmp/triton"},
     "huggingface_hub constants; torch/utils/cpp_extension.py",
     cache},
    {"FS-DISK-LOW",
     Severity::kWarning,
     Group::kStorage,
     {"little space where the job writes", "任务输出位置空间不足"},
     {"Is 5 % of the output's file system free, or 20 GiB?", "输出所在文件系统是否还有 5% 或 20 GiB 空闲？"},
     {"A full training state takes 14 to 16 bytes per parameter (7 billion: about 100 GiB), twice while the new checkpoint replaces the "
      "old one. "
      "When it does not fit, the save fails and the file is half written.",
      "完整训练状态每个参数约占 14～16 字节（70 亿参数约 100 GiB），新 checkpoint "
      "替换旧的过程中还要双份。放不下时保存失败，留下半个文件。"},
     {"Make room, keep fewer checkpoints (save_total_limit), or name another folder:\n$ df -h\n$ du -xh --max-depth=2 / | sort -h | tail",
      "腾出空间，减少保留的 checkpoint（save_total_limit），或换目录：\n$ df -h\n$ du -xh --max-depth=2 / | sort -h | tail"},
     "imbue-ai/cluster-health (95 % used fails); ZeRO paper, section 3 (16 bytes per parameter)",
     disk_low},
    {"FS-INODES-LOW",
     Severity::kWarning,
     Group::kStorage,
     {"few inodes where the job writes", "任务输出位置 inode 不足"},
     {"Are 1 % of the inodes, or 10,000, free where the job writes?", "任务写入的位置是否还有 1% 或 10000 个空闲 inode？"},
     {"Caches and checkpoints make many files. When the inodes end, new files fail with \"No space left on device\" though space is free.",
      "缓存和 checkpoint 会产生大量文件。inode 用完后，即使还有空间，创建文件也会报 \"No space left on device\"。"},
     {"Find the many small files:\n$ df -i\n$ du --inodes -x --max-depth=2 / | sort -n | tail",
      "找出大量小文件：\n$ df -i\n$ du --inodes -x --max-depth=2 / | sort -n | tail"},
     "statvfs(3): f_favail",
     inodes_low},
    {"FS-SLOW-WRITE",
     Severity::kWarning,
     Group::kStorage,
     {"writing is much slower on one host", "某台机器写盘明显偏慢"},
     {"Does a synced write of 64 KiB take this host ten times as long as the others?",
      "写入并同步 64 KiB，这台机器是否比其他机器慢十倍以上？"},
     {"All ranks wait for the slowest at every checkpoint. A dying disk, a saturated NFS server, or a wrong mount option (sync) shows so.",
      "每次保存时所有 rank 都要等最慢的一台。磁盘将坏、NFS 服务器饱和或挂载选项不当（sync）都会这样。"},
     {"See what the disk or the server is doing:\n$ iostat -x 1 3\n$ nfsiostat 1 3",
      "查看磁盘或服务器状态：\n$ iostat -x 1 3\n$ nfsiostat 1 3"},
     "",
     slow_write},
};

}  // namespace

std::span<const Row> space_rows() { return kSpaceRows; }

}  // namespace doctor
