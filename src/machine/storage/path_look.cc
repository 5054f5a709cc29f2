#include "machine/storage/path_look.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "os/clock.h"
#include "os/fd.h"

namespace phalanx::machine {
namespace {

constexpr size_t kWriteBytes = 64 << 10;

// "" for "/", so that a path can be put behind it.
std::string parent_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

bool stat_folder(const std::string& path) {
  struct stat s{};
  return ::stat(path.empty() ? "/" : path.c_str(), &s) == 0 && S_ISDIR(s.st_mode);
}

// The nearest thing that exists: the path itself, or a folder above it.
std::string nearest_existing(const std::string& root, const std::string& path) {
  struct stat s{};
  if (::stat((root + path).c_str(), &s) == 0) return path;
  return nearest_folder(root, path);
}

std::string without_links(const std::string& root, const std::string& path) {
  char real[PATH_MAX];
  if (!::realpath((root + path).c_str(), real)) return path;
  std::string found = real;
  if (root.empty()) return found;
  return found.rfind(root, 0) == 0 ? found.substr(root.size()) : path;
}

void look_at_kind(const std::string& full, PathFact& fact) {
  struct stat s{};
  os::Mono begin = os::mono_now();
  int result = ::stat(full.c_str(), &s);
  int why = errno;
  fact.stat_ns = (os::mono_now() - begin).count();
  fact.exists = result == 0;
  if (fact.exists) {
    fact.kind = S_ISREG(s.st_mode) ? "file" : S_ISDIR(s.st_mode) ? "folder" : "other";
    if (S_ISREG(s.st_mode)) fact.size = s.st_size;
    if (::access(full.c_str(), R_OK | (S_ISDIR(s.st_mode) ? X_OK : 0)) != 0) fact.error = std::strerror(errno);
    return;
  }
  if (::lstat(full.c_str(), &s) == 0 && S_ISLNK(s.st_mode)) fact.kind = "link";
  if (why != ENOENT && why != ENOTDIR) fact.error = std::strerror(why);
}

}  // namespace

std::string nearest_folder(const std::string& root, const std::string& path) {
  std::string at = path;
  while (!at.empty() && !stat_folder(root + at)) at = parent_of(at);
  return at.empty() ? "/" : at;
}

void look_at(const std::string& root, const std::vector<Mount>& mounts, PathFact& fact) {
  look_at_kind(root + fact.path, fact);
  std::string near = nearest_existing(root, fact.path);
  if (const Mount* mount = mount_of(mounts, without_links(root, near))) {
    fact.mount_point = mount->mount_point;
    fact.fs_type = mount->fs_type;
    fact.source = mount->source;
  }
  struct statvfs v{};
  if (::statvfs((root + near).c_str(), &v) != 0) {
    if (fact.error.empty()) fact.error = std::strerror(errno);
    return;
  }
  fact.fs_id = static_cast<int64_t>(v.f_fsid & INT64_MAX);
  int64_t unit = static_cast<int64_t>(v.f_frsize);
  fact.total_bytes = static_cast<int64_t>(v.f_blocks) * unit;
  fact.free_bytes = static_cast<int64_t>(v.f_bavail) * unit;
  fact.inodes = static_cast<int64_t>(v.f_files);
  fact.free_inodes = static_cast<int64_t>(v.f_favail);
  fact.read_only = (v.f_flag & ST_RDONLY) != 0;
}

// File systems of this machine that reserve the space when they are written to: no space and no quota are reported by write(), not later.
// Magic numbers from statfs(2): ext2-4, XFS, Btrfs, tmpfs, overlayfs, F2FS.
bool reserves_on_write(const os::Fd& fd) {
  struct statfs s{};
  if (::fstatfs(fd.get(), &s) != 0) return false;
  auto type = static_cast<uint32_t>(s.f_type);
  for (uint32_t known : {0xEF53U, 0x58465342U, 0x9123683EU, 0x01021994U, 0x794C7630U, 0xF2F52010U})
    if (type == known) return true;
  return false;
}

WriteTest try_write(const std::string& folder) {
  WriteTest test;
  auto failed = [&](const char* operation) {
    test.error = fmt::format("{}: {}", operation, std::strerror(errno));
    return test;
  };
  std::string path = (folder == "/" ? "" : folder) + "/.phalanx-probe-XXXXXX";
  os::Mono begin = os::mono_now();
  os::Fd fd(::mkostemp(path.data(), O_CLOEXEC));
  if (!fd.valid()) return failed("create");
  if (::unlink(path.c_str()) != 0) return failed("remove");
  std::string block(kWriteBytes, 'x');
  for (size_t done = 0; done < block.size();) {
    ssize_t n = ::write(fd.get(), block.data() + done, block.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("write");
    done += static_cast<size_t>(n);
  }
  // A file server may only say when it is asked to store the bytes; elsewhere that would wait for the disk and prove nothing more.
  if (!reserves_on_write(fd) && ::fsync(fd.get()) != 0) return failed("fsync");
  if (::close(fd.release()) != 0) return failed("close");
  test.took_ns = (os::mono_now() - begin).count();
  test.done = true;
  return test;
}

}  // namespace phalanx::machine
