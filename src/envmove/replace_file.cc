#include "envmove/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/try.h"
#include "os/files.h"

namespace phalanx::envmove {
namespace {

// The same name every time, so that what an interrupted one left is found and replaced; no longer than a name may be.
std::string beside(const Spot& spot) {
  constexpr size_t kLongest = 200;
  return ".phalanx-rehome-" + (spot.name.size() <= kLongest ? spot.name : base::sha256_hex(spot.name));
}

base::Status no_left_over(const Spot& spot, const std::string& temporary) {
  if (unlinkat(spot.folder.get(), temporary.c_str(), 0) == 0 || errno == ENOENT) return base::ok();
  return base::system_error("unlink the file beside", spot.path);
}

base::Status renamed(const Spot& spot, const std::string& temporary) {
  if (renameat(spot.folder.get(), temporary.c_str(), spot.folder.get(), spot.name.c_str()) == 0) return base::ok();
  base::Error error = base::system_error("rename to", spot.path);
  unlinkat(spot.folder.get(), temporary.c_str(), 0);
  return error;
}

base::Status filled(const os::Fd& file, const std::string& path, std::string_view content, const struct stat& like) {
  TRY(os::write_all(file.get(), content, path));
  // The owner first: changing it clears bits of the mode. Who may not give files away keeps them.
  if (fchown(file.get(), like.st_uid, like.st_gid) != 0 && errno != EPERM) return base::system_error("chown", path);
  if (fchmod(file.get(), like.st_mode & 0777) != 0) return base::system_error("chmod", path);
  const timespec times[] = {like.st_atim, like.st_mtim};
  if (futimens(file.get(), times) != 0) return base::system_error("utimens", path);
  if (fdatasync(file.get()) != 0) return base::system_error("write", path);
  return base::ok();
}

}  // namespace

base::Status replace_file(const Spot& spot, std::string_view content, const struct stat& like) {
  const std::string temporary = beside(spot);
  TRY(no_left_over(spot, temporary));
  os::Fd file(openat(spot.folder.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return base::system_error("create a file beside", spot.path);
  if (base::Status done = filled(file, spot.path, content, like); !done.ok()) {
    unlinkat(spot.folder.get(), temporary.c_str(), 0);
    return done;
  }
  return renamed(spot, temporary);
}

base::Status replace_link(const Spot& spot, const std::string& target) {
  const int folder = spot.folder.get();
  const std::string temporary = beside(spot);
  TRY(no_left_over(spot, temporary));
  struct stat like{};
  if (fstatat(folder, spot.name.c_str(), &like, AT_SYMLINK_NOFOLLOW) != 0) return base::system_error("look up", spot.path);
  if (symlinkat(target.c_str(), folder, temporary.c_str()) != 0) return base::system_error("create a link beside", spot.path);
  if (fchownat(folder, temporary.c_str(), like.st_uid, like.st_gid, AT_SYMLINK_NOFOLLOW) != 0 && errno != EPERM)
    return base::system_error("chown", spot.path);
  return renamed(spot, temporary);
}

base::Status replace_by_name_of(const Spot& spot, const Spot& other) {
  const std::string temporary = beside(spot);
  TRY(no_left_over(spot, temporary));
  if (linkat(other.folder.get(), other.name.c_str(), spot.folder.get(), temporary.c_str(), 0) != 0)
    return base::system_error("create a name beside", spot.path);
  return renamed(spot, temporary);
}

}  // namespace phalanx::envmove
