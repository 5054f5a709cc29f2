#include "cases.h"

namespace phalanx::doctor::test {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kGiB = 1 << 30;

machine::StorageFacts& storage(Situation& s, size_t h) { return s.hosts[h].facts.storage; }

// A path on every host, on a local ext4 disk with room.
void give_path(Situation& s, const std::string& path, const std::string& role, const std::string& named_by = "--data_path") {
  for (HostView& h : s.hosts) {
    machine::PathFact f;
    f.path = path;
    f.role = role;
    f.named_by = named_by;
    f.exists = true;
    f.kind = "folder";
    f.entries = 3;
    f.token = "aaaa";
    f.mount_point = "/data";
    f.fs_type = "ext4";
    f.source = "/dev/sdb1";
    f.total_bytes = 2000 * kGiB;
    f.free_bytes = 1500 * kGiB;
    f.inodes = 10'000'000;
    f.free_inodes = 9'000'000;
    if (role == "output" || role == "cache" || role == "tmp") f.writable = true, f.write_ns = 3'000'000;
    h.facts.storage.paths.push_back(f);
  }
}
machine::PathFact& last(Situation& s, size_t h) { return storage(s, h).paths.back(); }

void refuse(machine::PathFact& f, const std::string& why) {
  f.writable = false;
  f.write_ns = 0;
  f.error = why;
}

void lose(machine::PathFact& f) {
  f.exists = false;
  f.kind.clear();
  f.token.clear();
  f.entries = -1;
}

void to_nfs(machine::PathFact& f, const std::string& source = "192.168.20.9:/data") {
  f.fs_type = "nfs4";
  f.source = source;
}

std::vector<Case> shared_memory() {
  return {
      hit("FS-SHM-SMALL", "docker's 64 MiB", docker_host_network, [](Situation& s) { storage(s, 1).shm_total_bytes = 64 * kMiB; }),
      hit("FS-SHM-SMALL", "1 MiB on one of four", plain_ethernet,
          [](Situation& s) { storage(s, 2).shm_total_bytes = storage(s, 2).shm_free_bytes = kMiB; }),
      miss("FS-SHM-SMALL", "a small virtual machine with half its memory", plain_ethernet,
           [](Situation& s) {
             s.hosts[0].facts.machine.memory_bytes = kGiB;
             storage(s, 0).shm_total_bytes = storage(s, 0).shm_free_bytes = kGiB / 2;
           }),
      miss("FS-SHM-SMALL", "1 GiB of 512", plain_ethernet, [](Situation& s) { storage(s, 0).shm_total_bytes = kGiB; }),
      hit("FS-SHM-MISSING", "a container without it", docker_host_network,
          [](Situation& s) { storage(s, 0).shm_present = false, storage(s, 0).shm_total_bytes = 0; }),
      miss("FS-SHM-MISSING", "storage was not probed", plain_ethernet, [](Situation& s) { storage(s, 0) = {}; }),
      hit("FS-SHM-FULL", "an orphan fills it", bond_infiniband,
          [](Situation& s) { storage(s, 1).shm_free_bytes = kGiB / 2, storage(s, 1).shm_orphan_bytes = 200 * kGiB; }),
      miss("FS-SHM-FULL", "2 GiB are left", bond_infiniband, [](Situation& s) { storage(s, 1).shm_free_bytes = 2 * kGiB; }),
      hit("FS-SHM-ORPHANS", "a killed job's segments", single_machine,
          [](Situation& s) { storage(s, 0).shm_orphans = {"nccl-AbCdEf", "torch_123_4"}, storage(s, 0).shm_orphan_bytes = 9 * kMiB; }),
      miss("FS-SHM-ORPHANS", "none", single_machine, [](Situation&) {}),
      hit("FS-REMOVE-IPC", "said in logind.conf", plain_ethernet, [](Situation& s) { storage(s, 0).remove_ipc = true; }),
      miss("FS-REMOVE-IPC", "root is exempt", docker_host_network, [](Situation& s) { storage(s, 0).remove_ipc = true; }),
      miss("FS-REMOVE-IPC", "turned off", plain_ethernet, [](Situation& s) { storage(s, 0).remove_ipc = false; }),
  };
}

std::vector<Case> space() {
  return {
      hit("FS-DISK-FULL", "ENOSPC", plain_ethernet,
          [](Situation& s) { give_path(s, "/data/out", "output"), refuse(last(s, 1), "write: No space left on device"); }),
      hit("FS-DISK-FULL", "quota", plain_ethernet,
          [](Situation& s) { give_path(s, "/data/out", "output"), refuse(last(s, 1), "fsync: Disk quota exceeded"); }),
      miss("FS-DISK-FULL", "inodes, not bytes", plain_ethernet,
           [](Situation& s) {
             give_path(s, "/data/out", "output"), refuse(last(s, 1), "create: No space left on device"), last(s, 1).free_inodes = 0;
           }),
      miss("FS-DISK-FULL", "an input on a full disk", plain_ethernet,
           [](Situation& s) { give_path(s, "/data/in", "input"), last(s, 1).free_bytes = 0; }),
      hit("FS-INODES-FULL", "no inode left", plain_ethernet,
          [](Situation& s) {
            give_path(s, "/data/out", "output"), refuse(last(s, 1), "create: No space left on device"), last(s, 1).free_inodes = 0;
          }),
      miss("FS-INODES-FULL", "btrfs counts none", plain_ethernet,
           [](Situation& s) {
             give_path(s, "/data/out", "output");
             last(s, 1).inodes = last(s, 1).free_inodes = 0;
           }),
      hit("FS-READ-ONLY", "the disk failed", bond_infiniband,
          [](Situation& s) {
            give_path(s, "/data/out", "output"), refuse(last(s, 3), "create: Read-only file system"), last(s, 3).read_only = true;
          }),
      miss("FS-READ-ONLY", "a read-only input", bond_infiniband,
           [](Situation& s) { give_path(s, "/data/in", "input"), last(s, 3).read_only = true; }),
      hit("FS-NOT-WRITABLE", "another user's folder", plain_ethernet,
          [](Situation& s) { give_path(s, "/data/out", "output"), refuse(last(s, 2), "create: Permission denied"); }),
      miss("FS-NOT-WRITABLE", "the write did not answer in time", plain_ethernet,
           [](Situation& s) { give_path(s, "/data/out", "output"), last(s, 2).writable.reset(); }),
      hit("FS-TMP-NOT-WRITABLE", "/tmp is full", plain_ethernet,
          [](Situation& s) { give_path(s, "/tmp", "tmp", "temporary files"), refuse(last(s, 0), "write: No space left on device"); }),
      miss("FS-TMP-NOT-WRITABLE", "well", plain_ethernet, [](Situation& s) { give_path(s, "/tmp", "tmp", "temporary files"); }),
      hit("FS-CACHE-NOT-WRITABLE", "a user without a home", docker_host_network,
          [](Situation& s) {
            give_path(s, "/.cache", "cache", "caches of HuggingFace and PyTorch"), refuse(last(s, 0), "create: Permission denied");
          }),
      miss("FS-CACHE-NOT-WRITABLE", "nobody needs it without PyTorch", docker_host_network,
           [](Situation& s) {
             give_path(s, "/.cache", "cache", "caches of HuggingFace and PyTorch"), refuse(last(s, 0), "create: Permission denied");
             s.hosts[0].facts.software.packages.clear();
           }),
      hit("FS-DISK-LOW", "9 GiB of 2 TiB", plain_ethernet,
          [](Situation& s) { give_path(s, "/data/out", "output"), last(s, 0).free_bytes = 9 * kGiB; }),
      miss("FS-DISK-LOW", "4 % of a large server", plain_ethernet,
           [](Situation& s) { give_path(s, "/data/out", "output"), last(s, 0).free_bytes = 80 * kGiB; }),
      miss("FS-DISK-LOW", "a small disk with room", plain_ethernet,
           [](Situation& s) { give_path(s, "/data/out", "output"), last(s, 0).total_bytes = 20 * kGiB, last(s, 0).free_bytes = 8 * kGiB; }),
      hit("FS-INODES-LOW", "a thousand left", plain_ethernet,
          [](Situation& s) { give_path(s, "/data/out", "output"), last(s, 0).free_inodes = 1000; }),
      miss("FS-INODES-LOW", "a small file system with a tenth left", plain_ethernet,
           [](Situation& s) { give_path(s, "/data/out", "output"), last(s, 0).inodes = 1000, last(s, 0).free_inodes = 100; }),
      hit("FS-SLOW-WRITE", "2 s against 3 ms", plain_ethernet,
          [](Situation& s) { give_path(s, "/data/out", "output"), last(s, 3).write_ns = 2'000'000'000; }),
      miss("FS-SLOW-WRITE", "slow everywhere", plain_ethernet,
           [](Situation& s) {
             give_path(s, "/data/out", "output");
             for (size_t h = 0; h < 4; ++h) last(s, h).write_ns = 700'000'000;
           }),
      miss("FS-SLOW-WRITE", "40 ms against 3", plain_ethernet,
           [](Situation& s) { give_path(s, "/data/out", "output"), last(s, 3).write_ns = 40'000'000; }),
  };
}

void all_nfs(Situation& s) {
  for (size_t h = 0; h < s.hosts.size(); ++h) to_nfs(last(s, h)), last(s, h).token.clear();
}

void fstab(Situation& s, size_t h, const std::string& server, bool mounted = false) {
  storage(s, h).network_mounts.push_back({"/data", "nfs", server, "/data", mounted});
}

std::vector<Case> mounts() {
  return {
      hit("FS-HUNG", "a dead server", plain_ethernet,
          [](Situation& s) {
            give_path(s, "/data/set", "input"), to_nfs(last(s, 1));
            lose(last(s, 1)), last(s, 1).error = "no answer for 1.1 s; its process is in state D, waiting in rpc_wait_bit_killable";
            storage(s, 1).hung = {"/data/set"};
          }),
      miss("FS-HUNG", "an error that came at once", plain_ethernet,
           [](Situation& s) { give_path(s, "/data/set", "input"), last(s, 1).error = "Input/output error"; }),
      hit("FS-STALE", "exported anew", plain_ethernet,
          [](Situation& s) { give_path(s, "/data/set", "input"), lose(last(s, 1)), last(s, 1).error = "Stale file handle"; }),
      miss("FS-STALE", "another error", plain_ethernet,
           [](Situation& s) { give_path(s, "/data/set", "input"), lose(last(s, 1)), last(s, 1).error = "Permission denied"; }),
      hit("FS-MOUNT-MISSING", "one of four has it on its own disk", plain_ethernet,
          [](Situation& s) {
            give_path(s, "/data/set", "input"), all_nfs(s), last(s, 2).fs_type = "ext4", last(s, 2).source = "/dev/sda1";
          }),
      hit("FS-MOUNT-MISSING", "one of two", docker_host_network,
          [](Situation& s) {
            give_path(s, "/data/set", "input"), all_nfs(s), last(s, 1).fs_type = "ext4", last(s, 1).source = "/dev/sda1";
          }),
      miss("FS-MOUNT-MISSING", "the server has it on its own disk", plain_ethernet,
           [](Situation& s) {
             give_path(s, "/data/set", "input"), all_nfs(s);
             for (size_t h = 1; h < 4; ++h) last(s, h).source = s.hosts[0].address + ":/data";
             last(s, 0).fs_type = "xfs", last(s, 0).source = "/dev/md0";
           }),
      miss("FS-MOUNT-MISSING", "local disks of different kinds", plain_ethernet,
           [](Situation& s) { give_path(s, "/data/set", "input"), last(s, 2).fs_type = "xfs", last(s, 2).source = "/dev/nvme0n1p1"; }),
      miss("FS-MOUNT-MISSING", "a copy with the same content", plain_ethernet,
           [](Situation& s) {
             give_path(s, "/data/set", "input");
             for (size_t h = 0; h < 3; ++h) to_nfs(last(s, h));
           }),
      hit("FS-MOUNT-DIFFERS", "another export", plain_ethernet,
          [](Situation& s) { give_path(s, "/data/set", "input"), all_nfs(s), last(s, 2).source = "192.168.20.9:/old/data"; }),
      miss("FS-MOUNT-DIFFERS", "the same export by another address of the server", plain_ethernet,
           [](Situation& s) { give_path(s, "/data/set", "input"), all_nfs(s), last(s, 2).source = "192.168.20.10:/data"; }),
      hit("FS-MOUNT-LOCAL", "a data disk was not mounted", plain_ethernet,
          [](Situation& s) { give_path(s, "/data/out", "output"), last(s, 3).mount_point = "/"; }),
      miss("FS-MOUNT-LOCAL", "nobody has a data disk", plain_ethernet,
           [](Situation& s) {
             give_path(s, "/data/out", "output");
             for (size_t h = 0; h < 4; ++h) last(s, h).mount_point = "/";
           }),
      hit("FS-FSTAB-NOT-MOUNTED", "the data set lies there", plain_ethernet,
          [](Situation& s) { give_path(s, "/data/set", "input"), fstab(s, 1, "192.168.20.9"); }),
      miss("FS-FSTAB-NOT-MOUNTED", "nobody needs it", plain_ethernet, [](Situation& s) { fstab(s, 1, "192.168.20.9"); }),
      hit("FS-NFS-TYPO", "192.169 for 192.168", plain_ethernet, [](Situation& s) { fstab(s, 1, "192.169.20.11"); }),
      miss("FS-NFS-TYPO", "it is mounted and answers", plain_ethernet, [](Situation& s) { fstab(s, 1, "192.169.20.11", true); }),
      miss("FS-NFS-TYPO", "a neighbour in the same network", plain_ethernet, [](Situation& s) { fstab(s, 1, "192.168.20.111"); }),
      miss("FS-NFS-TYPO", "a storage network", plain_ethernet, [](Situation& s) { fstab(s, 1, "10.9.0.11"); }),
      hit("FS-CACHE-ON-NFS", "Triton's cache in a shared home", plain_ethernet,
          [](Situation& s) { give_path(s, "/home/train/.triton", "cache", "Triton's cache"), to_nfs(last(s, 0)); }),
      miss("FS-CACHE-ON-NFS", "HuggingFace's cache may be shared", plain_ethernet,
           [](Situation& s) { give_path(s, "/home/train/hf", "cache", "HF_HOME"), to_nfs(last(s, 0)); }),
  };
}

std::vector<Case> paths() {
  return {
      hit("FS-PATH-MISSING", "nowhere", plain_ethernet,
          [](Situation& s) {
            give_path(s, "/data/set", "input");
            for (size_t h = 0; h < 4; ++h) lose(last(s, h));
          }),
      miss("FS-PATH-MISSING", "an output that is to be made", plain_ethernet,
           [](Situation& s) {
             give_path(s, "/data/out", "output");
             for (size_t h = 0; h < 4; ++h) lose(last(s, h));
           }),
      hit("FS-PATH-ONLY-ON", "on the first host only", plain_ethernet,
          [](Situation& s) {
            give_path(s, "/data/model", "input", "--model_name_or_path");
            for (size_t h = 1; h < 4; ++h) lose(last(s, h));
          }),
      miss("FS-PATH-ONLY-ON", "an output that one host has", plain_ethernet,
           [](Situation& s) {
             give_path(s, "/data/out", "output");
             for (size_t h = 1; h < 4; ++h) lose(last(s, h));
           }),
      miss("FS-PATH-ONLY-ON", "a file system that does not answer is another finding", plain_ethernet,
           [](Situation& s) {
             give_path(s, "/data/model", "input"), lose(last(s, 1)), last(s, 1).error = "no answer for 1.1 s";
             storage(s, 1).hung = {"/data/model"};
           }),
      hit("FS-PATH-DIFFERS", "of unknown use", plain_ethernet,
          [](Situation& s) { give_path(s, "/opt/x", "any", "--x"), lose(last(s, 2)); }),
      miss("FS-PATH-DIFFERS", "nowhere", plain_ethernet,
           [](Situation& s) {
             give_path(s, "/opt/x", "any", "--x");
             for (size_t h = 0; h < 4; ++h) lose(last(s, h));
           }),
      hit("FS-KIND-DIFFERS", "a file where the others have a folder", plain_ethernet,
          [](Situation& s) { give_path(s, "/data/set", "input"), last(s, 2).kind = "file"; }),
      miss("FS-KIND-DIFFERS", "not there", plain_ethernet, [](Situation& s) { give_path(s, "/data/set", "input"), lose(last(s, 2)); }),
      hit("FS-PATH-UNREADABLE", "mode 0700", plain_ethernet,
          [](Situation& s) { give_path(s, "/data/set", "input"), last(s, 2).error = "Permission denied"; }),
      miss("FS-PATH-UNREADABLE", "a home that is closed", plain_ethernet,
           [](Situation& s) { give_path(s, "/root", "home", "HOME"), last(s, 2).error = "Permission denied"; }),
      hit("FS-WORKDIR-MISSING", "not on the last host", plain_ethernet, [](Situation& s) { lose(storage(s, 3).paths[0]); }),
      miss("FS-WORKDIR-MISSING", "empty there", plain_ethernet, [](Situation& s) { storage(s, 3).paths[0].entries = 0; }),
      hit("FS-CONTENT-DIFFERS", "another data set", plain_ethernet,
          [](Situation& s) { give_path(s, "/data/set", "input"), last(s, 3).token = "bbbb", last(s, 3).entries = 2; }),
      miss("FS-CONTENT-DIFFERS", "outputs differ by nature", plain_ethernet,
           [](Situation& s) { give_path(s, "/data/out", "output"), last(s, 3).token = "bbbb"; }),
      miss("FS-CONTENT-DIFFERS", "not found out in time", plain_ethernet,
           [](Situation& s) { give_path(s, "/data/set", "input"), last(s, 3).token.clear(); }),
      miss("FS-CONTENT-DIFFERS", "working directories differ by logs", plain_ethernet,
           [](Situation& s) { storage(s, 3).paths[0].token = "w1"; }),
  };
}

}  // namespace

std::vector<Case> storage_cases() {
  std::vector<Case> all;
  for (auto* cases : {shared_memory, space, mounts, paths})
    for (Case& c : cases()) all.push_back(std::move(c));
  return all;
}

}  // namespace phalanx::doctor::test
