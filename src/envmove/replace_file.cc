#include "envmove/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/try.h"
#include "os/fd.h"
#include "os/files.h"

namespace phalanx::envmove {
namespace {

// The same name every time, so that what an interrupted one left is found and replaced.
std::string beside(const std::string& path) {
  const size_t slash = path.rfind('/');
  return path.substr(0, slash + 1) + ".phalanx-rehome-" + path.substr(slash + 1);
}

base::Status renamed(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return base::ok();
  base::Error error = base::system_error("rename to", to);
  unlink(from.c_str());
  return error;
}

base::Status filled(const os::Fd& file, const std::string& path, std::string_view content, const struct stat& like) {
  TRY(os::write_all(file.get(), content, path));
  // The owner first: changing it clears bits of the mode. Who may not give files away keeps them.
  if (fchown(file.get(), like.st_uid, like.st_gid) != 0 && errno != EPERM) return base::system_error("set the owner of", path);
  if (fchmod(file.get(), like.st_mode & 07777) != 0) return base::system_error("set the mode of", path);
  const timespec times[] = {like.st_atim, like.st_mtim};
  if (futimens(file.get(), times) != 0) return base::system_error("set the times of", path);
  if (fdatasync(file.get()) != 0) return base::system_error("write", path);
  return base::ok();
}

}  // namespace

base::Status replace_file(const std::string& path, std::string_view content) {
  struct stat like{};
  if (lstat(path.c_str(), &like) != 0) return base::system_error("look up", path);
  const std::string temporary = beside(path);
  if (unlink(temporary.c_str()) != 0 && errno != ENOENT) return base::system_error("remove", temporary);
  os::Fd file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return base::system_error("create", temporary);
  if (base::Status done = filled(file, temporary, content, like); !done.ok()) {
    unlink(temporary.c_str());
    return done;
  }
  return renamed(temporary, path);
}

base::Status replace_link(const std::string& path, const std::string& target) {
  const std::string temporary = beside(path);
  if (unlink(temporary.c_str()) != 0 && errno != ENOENT) return base::system_error("remove", temporary);
  struct stat like{};
  if (lstat(path.c_str(), &like) != 0) return base::system_error("look up", path);
  if (symlink(target.c_str(), temporary.c_str()) != 0) return base::system_error("create", temporary);
  if (lchown(temporary.c_str(), like.st_uid, like.st_gid) != 0 && errno != EPERM) return base::system_error("set the owner of", temporary);
  return renamed(temporary, path);
}

base::Status replace_by_name_of(const std::string& path, const std::string& other) {
  const std::string temporary = beside(path);
  if (unlink(temporary.c_str()) != 0 && errno != ENOENT) return base::system_error("remove", temporary);
  if (link(other.c_str(), temporary.c_str()) != 0) return base::system_error("create", temporary);
  return renamed(temporary, path);
}

}  // namespace phalanx::envmove
