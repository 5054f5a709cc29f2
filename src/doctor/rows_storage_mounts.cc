// What is mounted: the same on all hosts, from the server that was meant, and answering.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/address_words.h"
#include "doctor/examine.h"
#include "doctor/rows_storage.h"
#include "host/mounts.h"

namespace doctor {
namespace {

using host::NetworkMount;
using host::PathFact;

// What is no network file system was put there by some program, which alone can do it again.
std::string mount_again(const PathFact& f) {
  if (f.mount_point.empty() || f.mount_point == "/") return "";
  std::string at = base::shell_quote(f.mount_point);
  if (!host::is_network_fs(f.fs_type)) return "sudo umount -f -l " + at;
  return fmt::format("sudo umount -f -l {0}; sudo mount -t {1} {2} {0}", at, f.fs_type, base::shell_quote(f.source));
}

// Shows whether it still hangs, without hanging. Only its server can mend it: to detach it would cost the programs that use it what
// they have not saved.
std::string ask_again(const PathFact& f) { return f.mount_point.empty() ? "" : "timeout 5 stat -f " + base::shell_quote(f.mount_point); }

// One finding per file system, not per path on it.
void hung(const Situation& s, Findings& findings) {
  std::set<std::pair<size_t, std::string>> told;
  each_path(s, [&](size_t h, const PathFact& f) {
    if (!is_hung(s, h, f.path) || !told.insert({h, f.mount_point}).second) return;
    std::string source = f.source.empty() ? "" : fmt::format(" ({} {})", f.fs_type, f.source);
    findings.on(h,
                {fmt::format("{} on {}{}: {}", f.path, f.mount_point, source, f.error),
                 fmt::format("{}（位于 {}{}）：{}", f.path, f.mount_point, source, f.error)},
                ask_again(f));
  });
}

void stale(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const PathFact& f) {
    if (!contains(f.error, "Stale file handle") && !contains(f.error, "Transport endpoint")) return;
    findings.on(
        h, {fmt::format("{} on {}: {}", f.path, f.mount_point, f.error), fmt::format("{}（位于 {}）：{}", f.path, f.mount_point, f.error)},
        mount_again(f));
  });
}

bool network(const PathFact& f) { return host::is_network_fs(f.fs_type); }

// The server itself has the folder on a disk of its own: that is as it should be.
bool is_server(const HostView& h, const std::string& source) {
  std::string server = host::split_source(source).server;
  return server == h.name || server == h.facts.machine.hostname || has_address(h, server);
}

// Paths that most hosts have from a network file system, and which hosts have them from elsewhere.
struct Split {
  const PathFact* usual = nullptr;  // on the network
  std::vector<size_t> usual_hosts;
  std::vector<std::pair<size_t, const PathFact*>> others;
};
Split split(const PathOnHosts& p) {
  std::map<std::string, std::vector<std::pair<size_t, const PathFact*>>> groups;
  for (const auto& [h, f] : p.seen)
    if (!f->fs_type.empty()) groups[network(*f) ? f->fs_type + " " + host::split_source(f->source).path : ""].emplace_back(h, f);
  Split result;
  size_t most = 0, local = groups.count("") ? groups[""].size() : 0;
  for (const auto& [key, members] : groups)
    if (!key.empty() && members.size() > most) most = members.size(), result.usual = members[0].second;
  if (!result.usual || most < local) return {};
  for (const auto& [key, members] : groups)
    for (const auto& [h, f] : members) {
      bool usual = network(*f) && f->fs_type == result.usual->fs_type &&
                   host::split_source(f->source).path == host::split_source(result.usual->source).path;
      if (usual) result.usual_hosts.push_back(h);
      else result.others.emplace_back(h, f);
    }
  return result;
}

bool same_content(const PathFact& a, const PathFact& b) { return !a.token.empty() && a.token == b.token; }

void mount_missing(const Situation& s, Findings& findings) {
  std::set<std::pair<size_t, std::string>> told;
  for (const PathOnHosts& p : paths_on_hosts(s, {"input", "output", "any", "workdir"})) {
    Split camps = split(p);
    for (const auto& [h, f] : camps.others) {
      if (network(*f) || same_content(*f, *camps.usual) || is_server(s.hosts[h], camps.usual->source)) continue;
      if (!told.insert({h, camps.usual->mount_point}).second) continue;
      Words others = host_names(s, camps.usual_hosts);
      const PathFact& u = *camps.usual;
      findings.on(h,
                  {fmt::format("{} is on this host's own disk ({} {}); {}: {} {}", p.path, f->mount_point, f->fs_type, others.english,
                               u.fs_type, u.source),
                   fmt::format("{} 在本机磁盘上（{} {}）；而 {} 上是 {} {}", p.path, f->mount_point, f->fs_type, others.chinese, u.fs_type,
                               u.source)},
                  fmt::format("sudo mkdir -p {0} && sudo mount -t {1} {2} {0}", base::shell_quote(u.mount_point), u.fs_type,
                              base::shell_quote(u.source)));
    }
  }
}

void mount_differs(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"input", "output", "any"})) {
    Split camps = split(p);
    for (const auto& [h, f] : camps.others) {
      if (!network(*f) || same_content(*f, *camps.usual)) continue;
      Words others = host_names(s, camps.usual_hosts);
      const PathFact& u = *camps.usual;
      findings.on(h, {fmt::format("{} is {} {}; {}: {} {}", p.path, f->fs_type, f->source, others.english, u.fs_type, u.source),
                      fmt::format("{} 来自 {} {}；而 {} 上是 {} {}", p.path, f->fs_type, f->source, others.chinese, u.fs_type, u.source)});
    }
  }
}

// A disk of its own elsewhere, the system's disk here: a forgotten mount fills that.
void mount_local(const Situation& s, Findings& findings) {
  for (const PathOnHosts& p : paths_on_hosts(s, {"input", "output"})) {
    std::vector<size_t> own_disk, root_disk;
    std::string where;
    for (const auto& [h, f] : p.seen) {
      if (f->mount_point.empty() || network(*f) || f->fs_type == "overlay") continue;
      if (f->mount_point == "/") root_disk.push_back(h);
      else own_disk.push_back(h), where = f->mount_point;
    }
    if (root_disk.empty() || own_disk.size() < 2 || own_disk.size() <= root_disk.size()) continue;
    Words others = host_names(s, own_disk);
    findings.on(root_disk,
                {fmt::format("{} is on the system's disk; {}: on {}", p.path, others.english, where),
                 fmt::format("{} 在系统盘上；而 {} 上位于 {}", p.path, others.chinese, where)},
                "findmnt " + base::shell_quote(where));
  }
}

bool below(const std::string& path, const std::string& folder) {
  return path == folder || (path.size() > folder.size() && path.compare(0, folder.size(), folder) == 0 && path[folder.size()] == '/');
}

// Somebody needs it: a path of the job lies there, or another host has it mounted.
bool is_needed(const Situation& s, size_t h, const NetworkMount& m) {
  for (const PathFact& f : s.hosts[h].facts.storage.paths)
    if (below(f.path, m.mount_point)) return true;
  for (const HostView& other : s.hosts)
    for (const NetworkMount& mounted : other.facts.storage.network_mounts)
      if (mounted.mounted && mounted.mount_point == m.mount_point) return true;
  return false;
}

void not_mounted(const Situation& s, Findings& findings) {
  for (size_t h = 0; h < s.hosts.size(); ++h)
    for (const NetworkMount& m : s.hosts[h].facts.storage.network_mounts) {
      if (m.mounted || !is_needed(s, h, m)) continue;
      std::string source = m.server.empty() ? m.export_path : m.server + ":" + m.export_path;
      findings.on(h,
                  {fmt::format("{} ({} {}) is in /etc/fstab and not mounted", m.mount_point, m.fs_type, source),
                   fmt::format("{}（{} {}）写在 /etc/fstab 里，但没有挂载", m.mount_point, m.fs_type, source)},
                  "sudo mount " + base::shell_quote(m.mount_point));
    }
}

// An address that is one slip of the finger from one that exists. Only of a server that does not serve: neighbours have such addresses.
void nfs_typo(const Situation& s, Findings& findings) {
  std::vector<KnownAddress> known = known_addresses(s);
  for (size_t h = 0; h < s.hosts.size(); ++h)
    for (const NetworkMount& m : s.hosts[h].facts.storage.network_mounts) {
      bool answers = m.mounted && !is_hung(s, h, m.mount_point) &&
                     std::none_of(s.hosts[h].facts.storage.hung.begin(), s.hosts[h].facts.storage.hung.end(),
                                  [&](const std::string& path) { return below(path, m.mount_point); });
      if (answers) continue;
      std::optional<KnownAddress> meant = probably_meant(m.server, known);
      if (!meant) continue;
      findings.on(
          h,
          {fmt::format("{} is to come from {}, which nobody here has; {} is {}", m.mount_point, m.server, meant->address, meant->owner),
           fmt::format("{} 指向 {}，这里没有机器用这个地址；{} 才是 {}", m.mount_point, m.server, meant->address, meant->owner)},
          fmt::format("sudo sed -i 's/{}:/{}:/' /etc/fstab && sudo mount {}", base::replace_all(m.server, ".", "\\."), meant->address,
                      base::shell_quote(m.mount_point)));
    }
}

void cache_on_network(const Situation& s, Findings& findings) {
  each_path(s, [&](size_t h, const PathFact& f) {
    bool locks = contains(f.named_by, "TRITON") || contains(f.named_by, "Triton") || contains(f.named_by, "EXTENSIONS") ||
                 contains(f.named_by, "INDUCTOR");
    if (f.role != "cache" || !locks || !network(f) || !f.exists) return;
    findings.on(h, {fmt::format("{} ({}) is on {} {}", f.path, f.named_by, f.fs_type, f.source),
                    fmt::format("{}（{}）位于 {} {}", f.path, f.named_by, f.fs_type, f.source)});
  });
}

constexpr Row kMountRows[] = {
    {"FS-HUNG",
     Severity::kError,
     Group::kStorage,
     {"a file system does not answer", "文件系统没有响应"},
     {"Does every file system the job uses answer a stat within a second?", "任务用到的文件系统是否能在一秒内响应 stat？"},
     {"A process that touches it waits in the kernel (state D) and cannot be killed; df and ls hang too. The kernel log says \"nfs: server "
      "X not "
      "responding, still trying\" or \"INFO: task python:123 blocked for more than 120 seconds\". The other ranks then wait for this one "
      "until NCCL's timeout.",
      "访问它的进程会卡在内核里（D 状态），无法杀死；df、ls 也会挂住。内核日志有 \"nfs: server X not responding, still trying\" 或 "
      "\"INFO: task python:123 blocked for more than 120 seconds\"。其他 rank 只能等它，直到 NCCL 超时。"},
     {"Bring the server back: the processes that wait then go on. See whether it answers again:\n$ timeout 5 stat -f <mount point>\nIf the "
      "server is gone for good, detach the mount and mount it again:\n$ sudo umount -f -l <mount point>; sudo mount <mount point>",
      "先恢复服务器：等待中的进程会继续运行。查看它是否已经恢复响应：\n$ timeout 5 stat -f <mount point>\n如果服务器无法恢复，"
      "卸载后重新挂载：\n$ sudo umount -f -l <mount point>; sudo mount <mount point>"},
     "nfs(5): hard; Linux Documentation/filesystems/fuse",
     hung},
    {"FS-STALE",
     Severity::kError,
     Group::kStorage,
     {"a mount is broken", "挂载已失效"},
     {"Do the mounts of the job's paths still lead somewhere?", "任务路径所在的挂载是否仍然有效？"},
     {"\"OSError: [Errno 116] Stale file handle\": the server has exported or restored the folder anew. \"[Errno 107] Transport endpoint "
      "is not "
      "connected\": the FUSE program behind the mount has died.",
      "\"OSError: [Errno 116] Stale file handle\"：服务器重新导出或恢复过该目录。\"[Errno 107] Transport endpoint is not connected\"："
      "挂载背后的 FUSE 程序已经退出。"},
     {"Mount it again:\n$ sudo umount -f -l <mount point>; sudo mount <mount point>",
      "重新挂载：\n$ sudo umount -f -l <mount point>; sudo mount <mount point>"},
     "errno(3): ESTALE, ENOTCONN",
     stale},
    {"FS-MOUNT-MISSING",
     Severity::kWarning,
     Group::kStorage,
     {"a network mount is missing on a host", "某台机器缺少网络挂载"},
     {"Do all hosts have the path from the same network file system?", "各机器的该路径是否来自同一个网络文件系统？"},
     {"Where the mount is missing, the path is an ordinary folder of the system's disk: empty (\"FileNotFoundError\"), old, or filling "
      "that disk "
      "with checkpoints that the other hosts do not see.",
      "缺少挂载的机器上，该路径只是系统盘上的普通目录：可能是空的（\"FileNotFoundError\"）、旧的，或者把其他机器看不到的 checkpoint "
      "写满系统盘。"},
     {"Mount it as on the other hosts, and write it into /etc/fstab with _netdev:\n$ findmnt <mount point>\n$ sudo mount -t nfs4 "
      "<server>:<export> <mount point>",
      "按其他机器的方式挂载，并带 _netdev 写入 /etc/fstab：\n$ findmnt <mount point>\n$ sudo mount -t nfs4 <server>:<export> <mount "
      "point>"},
     "field note 4",
     mount_missing},
    {"FS-MOUNT-DIFFERS",
     Severity::kNote,
     Group::kStorage,
     {"a path comes from different exports", "同一路径来自不同的导出"},
     {"Do all hosts mount the same export at the path?", "各机器在该路径挂载的是否为同一导出？"},
     {"Two exports may hold different data, or the same data twice. Compare before a long run.",
      "不同的导出可能内容不同，也可能是同一份数据的两个副本。长时间训练前先比较一下。"},
     {"Compare what is mounted:\n$ findmnt -T <mount point>", "比较挂载内容：\n$ findmnt -T <mount point>"},
     "",
     mount_differs},
    {"FS-MOUNT-LOCAL",
     Severity::kNote,
     Group::kStorage,
     {"a path is on the system's disk on one host only", "只有个别机器的该路径在系统盘上"},
     {"Do all hosts have the path on a disk of its own?", "各机器的该路径是否都在独立磁盘上？"},
     {"A data disk that was not mounted after a restart leaves an empty folder on the system's disk. The job writes there, and fills it.",
      "数据盘重启后没挂上时，原位置只剩系统盘上的空目录，任务会写到那里并把系统盘写满。"},
     {"See whether a disk waits to be mounted:\n$ lsblk -f\n$ sudo mount -a", "查看是否有磁盘未挂载：\n$ lsblk -f\n$ sudo mount -a"},
     "",
     mount_local},
    {"FS-FSTAB-NOT-MOUNTED",
     Severity::kWarning,
     Group::kStorage,
     {"a mount of /etc/fstab is not there", "/etc/fstab 中的挂载没有生效"},
     {"Is every network file system of /etc/fstab that the job needs mounted?",
      "任务需要的、写在 /etc/fstab 里的网络文件系统是否都已挂载？"},
     {"At boot a mount fails when the network or the server is not up yet, or its address is wrong. The folder is then empty, and nothing "
      "says so.",
      "开机时若网络或服务器尚未就绪，或地址写错，挂载就会失败。目录因此是空的，而且没有任何提示。"},
     {"Mount it and read the error; _netdev in its options makes the system wait for the network:\n$ sudo mount <mount point>",
      "手动挂载并查看报错；在选项中加 _netdev，系统会等网络就绪再挂载：\n$ sudo mount <mount point>"},
     "fstab(5), systemd.mount(5)",
     not_mounted},
    {"FS-NFS-TYPO",
     Severity::kWarning,
     Group::kStorage,
     {"the address of a file server looks mistyped", "文件服务器的地址疑似写错"},
     {"Is the address of a server that is not mounted one slip away from one that exists?",
      "没有挂上的服务器地址是否与某个真实地址只差一处？"},
     {"192.169.20.14 for 192.168.20.14: the first is a public address of somebody else. The mount waits for minutes (\"mount.nfs: "
      "Connection timed "
      "out\") and the data folder stays empty.",
      "例如把 192.168.20.14 写成 192.169.20.14：后者是别人的公网地址。mount 会等上几分钟（\"mount.nfs: Connection timed "
      "out\"），数据目录一直是空的。"},
     {"Correct the address and mount:\n$ sudo sed -i 's/<wrong server>:/<server>:/' /etc/fstab && sudo mount <mount point>",
      "改正地址后挂载：\n$ sudo sed -i 's/<wrong server>:/<server>:/' /etc/fstab && sudo mount <mount point>"},
     "field note 4; RFC 1918",
     nfs_typo},
    {"FS-CACHE-ON-NFS",
     Severity::kNote,
     Group::kStorage,
     {"a compiler's cache is on a network file system", "编译缓存放在网络文件系统上"},
     {"Are the caches of Triton and of PyTorch's extensions on a disk of the host?", "Triton 与 PyTorch 扩展的缓存是否在本机磁盘上？"},
     {"These caches are guarded by lock files. On a network file system without working locks all ranks wait for ever (stack: filelock … "
      "acquire), "
      "and hosts with different GPUs or compilers overwrite each other's files.",
      "这些缓存靠锁文件保护。网络文件系统的锁不可用时，所有 rank 会一直等待（调用栈：filelock … acquire）；GPU "
      "或编译器不同的机器还会互相覆盖文件。"},
     {"Give each host its own:\n$ export TRITON_CACHE_DIR=/tmp/triton TORCH_EXTENSIONS_DIR=/tmp/torch_extensions",
      "让每台机器用自己的目录：\n$ export TRITON_CACHE_DIR=/tmp/triton TORCH_EXTENSIONS_DIR=/tmp/torch_extensions"},
     "DeepSpeed (warning on TRITON_CACHE_DIR and NFS)",
     cache_on_network},
};

}  // namespace

std::span<const Row> mount_rows() { return kMountRows; }

}  // namespace doctor
