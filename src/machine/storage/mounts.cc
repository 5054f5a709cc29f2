#include "machine/storage/mounts.h"

#include <algorithm>

#include "base/text.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostMounts = 65'536;
constexpr size_t kMostFstab = 4'096;

bool octal(char c) { return c >= '0' && c <= '7'; }

// The kernel writes blank, tab, newline and backslash as \040 \011 \012 \134 (fs/proc_namespace.c, mangle).
std::string unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && octal(text[i + 1]) && octal(text[i + 2]) && octal(text[i + 3])) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool has_option(std::string_view options, std::string_view wanted) {
  std::vector<std::string_view> all = base::split(options, ',');
  return std::find(all.begin(), all.end(), wanted) != all.end();
}

// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
bool parse_line(std::string_view line, Mount& mount) {
  std::vector<std::string_view> f = base::split_words(line);
  auto dash = std::find(f.begin(), f.end(), "-");
  if (dash - f.begin() < 6 || f.end() - dash < 3) return false;
  base::Result<int64_t> id = base::parse_int(f[0], 0, INT64_MAX), parent = base::parse_int(f[1], 0, INT64_MAX);
  if (!id.ok() || !parent.ok() || f[4].empty() || f[4][0] != '/') return false;
  mount.id = *id;
  mount.parent = *parent;
  mount.root = unescape(f[3]);
  mount.mount_point = unescape(f[4]);
  mount.fs_type = std::string(dash[1]);
  mount.source = unescape(dash[2]);
  if (f.end() - dash > 3) mount.super_options = std::string(dash[3]);
  mount.read_only = has_option(f[5], "ro") || has_option(mount.super_options, "ro");
  return true;
}

bool covers(const std::string& mount_point, std::string_view path) {
  if (mount_point == "/") return true;
  return path.substr(0, mount_point.size()) == mount_point && (path.size() == mount_point.size() || path[mount_point.size()] == '/');
}

}  // namespace

std::vector<Mount> parse_mountinfo(std::string_view text) {
  std::vector<Mount> mounts;
  for (std::string_view line : base::split_lines(text)) {
    if (mounts.size() >= kMostMounts) break;
    Mount mount;
    if (parse_line(line, mount)) mounts.push_back(std::move(mount));
  }
  return mounts;
}

const Mount* mount_of(const std::vector<Mount>& mounts, std::string_view path) {
  const Mount* best = nullptr;
  for (const Mount& m : mounts)
    if (covers(m.mount_point, path) && (!best || m.mount_point.size() >= best->mount_point.size())) best = &m;
  return best;
}

std::vector<FstabEntry> parse_fstab(std::string_view text) {
  std::vector<FstabEntry> entries;
  for (std::string_view line : base::split_lines(text)) {
    if (entries.size() >= kMostFstab) break;
    std::vector<std::string_view> f = base::split_words(line);
    if (f.size() < 3 || f[0][0] == '#' || f[1][0] != '/') continue;
    FstabEntry e{unescape(f[0]), unescape(f[1]), std::string(f[2]), f.size() > 3 ? std::string(f[3]) : "", true};
    while (e.mount_point.size() > 1 && e.mount_point.back() == '/') e.mount_point.pop_back();
    e.automatic = !has_option(e.options, "noauto") && e.options.find("x-systemd.automount") == std::string::npos;
    entries.push_back(std::move(e));
  }
  return entries;
}

bool is_network_fs(std::string_view type) {
  static constexpr std::string_view kTypes[] = {"nfs", "nfs4",     "cifs",   "smb3", "smbfs", "lustre", "gpfs",      "beegfs", "ceph",
                                                "9p",  "virtiofs", "wekafs", "afs",  "pvfs2", "panfs",  "glusterfs", "curvefs"};
  static constexpr std::string_view kFuse[] = {"sshfs",   "juicefs", "glusterfs", "ceph",          "s3fs",     "gcsfuse",
                                               "ossfs",   "rclone",  "cosfs",     "mountpoint-s3", "obsfs",    "goofys",
                                               "moosefs", "mfs",     "JuiceFS",   "alluxio-fuse",  "seaweedfs"};
  if (std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes)) return true;
  if (type.substr(0, 5) != "fuse.") return false;
  return std::find(std::begin(kFuse), std::end(kFuse), type.substr(5)) != std::end(kFuse);
}

Export split_source(std::string_view source) {
  if (source.substr(0, 2) == "//") {
    size_t slash = source.find('/', 2);
    if (slash == std::string_view::npos) return {std::string(source.substr(2)), ""};
    return {std::string(source.substr(2, slash - 2)), std::string(source.substr(slash))};
  }
  size_t colon = std::string_view::npos;
  if (!source.empty() && source[0] == '[') {
    size_t close = source.find(']');
    if (close != std::string_view::npos && close + 1 < source.size() && source[close + 1] == ':') colon = close + 1;
  } else {
    colon = source.find(":/");
    if (colon != std::string_view::npos && source.substr(0, colon).find('/') != std::string_view::npos) colon = std::string_view::npos;
  }
  if (colon == std::string_view::npos || colon == 0) return {"", std::string(source)};
  std::string_view server = source.substr(0, colon);
  if (server[0] == '[') server = server.substr(1, server.size() - 2);
  server = server.substr(0, server.find_first_of(",@"));
  return {std::string(server), std::string(source.substr(colon + 1))};
}

}  // namespace phalanx::machine
