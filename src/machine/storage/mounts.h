// What is mounted where: /proc/self/mountinfo (proc(5)) and /etc/fstab (fstab(5)), read without touching a file system that may hang.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::machine {

struct Mount {
  int64_t id = 0, parent = 0;
  std::string root;         // the folder of the file system that is seen here; "/" unless bound
  std::string mount_point;  // absolute
  std::string fs_type, source;
  bool read_only = false;  // of this mount, or of the file system
  std::string super_options;
};

// At most 65,536 mounts; lines of another form are left out. Escapes (\040) are undone.
std::vector<Mount> parse_mountinfo(std::string_view text);
// The mount a path lies on: the longest mount point that is the path or above it, of equals the later (it covers the earlier). The
// path is taken as written: no links are followed. nullptr: none.
const Mount* mount_of(const std::vector<Mount>& mounts, std::string_view path);

struct FstabEntry {
  std::string source, mount_point, fs_type, options;
  bool automatic = true;  // mounted at boot: neither noauto nor by automount
};
// At most 4,096 entries.
std::vector<FstabEntry> parse_fstab(std::string_view text);

// File systems whose files lie on another machine.
bool is_network_fs(std::string_view fs_type);

// "nas:/export", "[fd00::5]:/export", "//server/share", "10.0.0.1@o2ib:/lfs", "mon1,mon2:/" → server (the first) and what it exports. A
// source without a server has an empty one.
struct Export {
  std::string server, path;
};
Export split_source(std::string_view source);

}  // namespace phalanx::machine
