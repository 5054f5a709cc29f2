// File systems under the paths a job uses, and shared memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"

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
PHALANX_FIELDS(PathFact, path, role, named_by, exists, kind, size, entries, token, mount_point, fs_type, source, fs_id, total_bytes,
               free_bytes, inodes, free_inodes, read_only, writable, error, write_ns, stat_ns);

// A network file system of /proc/self/mountinfo or /etc/fstab.
struct NetworkMount {
  std::string mount_point, fs_type;
  std::string server, export_path;
  bool mounted = false;  // else only in fstab
};
PHALANX_FIELDS(NetworkMount, mount_point, fs_type, server, export_path, mounted);

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
PHALANX_FIELDS(StorageFacts, paths, network_mounts, shm_total_bytes, shm_free_bytes, shm_present, shm_orphan_bytes, shm_orphans, remove_ipc,
               hung);

}  // namespace phalanx::machine
