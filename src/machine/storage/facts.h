// File systems under the paths a job uses, and shared memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace phalanx::machine {

struct PathFact {
  std::string path;  // absolute, as the job names it
  std::string role;  // as in NamedPath; "workdir", "tmp", "home", "cache" too
  std::string named_by;
  bool exists = false;
  std::string kind;      // "file", "folder", "link", "other"
  int64_t size = 0;      // of a file
  int64_t entries = -1;  // of a folder, up to 65,536
  // Same content, same token (path_token.h): of what the job reads. Empty: not found out, or not in time.
  std::string token;
  std::string mount_point, fs_type, source;  // of the nearest existing ancestor
  int64_t fs_id = 0;
  int64_t total_bytes = 0, free_bytes = 0;  // free to an unprivileged user
  int64_t inodes = 0, free_inodes = 0;
  bool read_only = false;
  std::optional<bool> writable;  // a file was made, synced and removed (outputs only)
  std::string error;             // of stat or of the write: "Permission denied"
  int64_t write_ns = 0;          // create, write 64 KiB, fsync, unlink
  int64_t stat_ns = 0;
};
template <typename V>
void fields(V& v, PathFact& f) {
  v("path", f.path);
  v("role", f.role);
  v("named_by", f.named_by);
  v("exists", f.exists);
  v("kind", f.kind);
  v("size", f.size);
  v("entries", f.entries);
  v("token", f.token);
  v("mount_point", f.mount_point);
  v("fs_type", f.fs_type);
  v("source", f.source);
  v("fs_id", f.fs_id);
  v("total_bytes", f.total_bytes);
  v("free_bytes", f.free_bytes);
  v("inodes", f.inodes);
  v("free_inodes", f.free_inodes);
  v("read_only", f.read_only);
  v("writable", f.writable);
  v("error", f.error);
  v("write_ns", f.write_ns);
  v("stat_ns", f.stat_ns);
}

// A network file system of /proc/self/mountinfo or /etc/fstab.
struct NetworkMount {
  std::string mount_point, fs_type;
  std::string server, export_path;
  bool mounted = false;  // else only in fstab
};
template <typename V>
void fields(V& v, NetworkMount& f) {
  v("mount_point", f.mount_point);
  v("fs_type", f.fs_type);
  v("server", f.server);
  v("export_path", f.export_path);
  v("mounted", f.mounted);
}

struct StorageFacts {
  std::vector<PathFact> paths;
  std::vector<NetworkMount> network_mounts;
  int64_t shm_total_bytes = 0, shm_free_bytes = 0;  // /dev/shm
  bool shm_present = false;
  int64_t shm_orphan_bytes = 0;
  std::vector<std::string> shm_orphans;  // nccl-*, torch_*, … that no process maps: at most 32
  std::optional<bool> remove_ipc;        // RemoveIPC of logind.conf
  std::vector<std::string> hung;         // paths whose file system did not answer
};
template <typename V>
void fields(V& v, StorageFacts& f) {
  v("paths", f.paths);
  v("network_mounts", f.network_mounts);
  v("shm_total_bytes", f.shm_total_bytes);
  v("shm_free_bytes", f.shm_free_bytes);
  v("shm_present", f.shm_present);
  v("shm_orphan_bytes", f.shm_orphan_bytes);
  v("shm_orphans", f.shm_orphans);
  v("remove_ipc", f.remove_ipc);
  v("hung", f.hung);
}

}  // namespace phalanx::machine
