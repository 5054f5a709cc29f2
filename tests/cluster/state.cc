#include "state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/try.h"

namespace phalanx::testbed {

namespace {

base::Result<os::Fd> open_lock(const std::string& path, int operation) {
  os::Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return base::system_error("open", path);
  if (::flock(fd.get(), operation) != 0) {
    if (errno == EWOULDBLOCK) return base::fail(base::ErrorKind::kTimeout, path + " is held by a living guard");
    return base::system_error("flock", path);
  }
  return fd;
}

}  // namespace

std::string state_path(const std::string& cluster, const std::string& file) {
  std::string path = std::string(kStateRoot) + "/" + cluster;
  return file.empty() ? path : path + "/" + file;
}

base::Result<std::string> read_text(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return base::system_error("open", path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

base::Status write_text(const std::string& path, const std::string& text, int mode) {
  os::Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!fd.valid()) return base::system_error("open", path);
  size_t done = 0;
  while (done < text.size()) {
    ssize_t n = ::write(fd.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::system_error("write", path);
    done += static_cast<size_t>(n);
  }
  if (::fchmod(fd.get(), static_cast<mode_t>(mode)) != 0) return base::system_error("chmod", path);
  return base::ok();
}

base::Status make_folder(const std::string& path, int mode) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return base::system_error("mkdir", path, error.value());
  if (::chmod(path.c_str(), static_cast<mode_t>(mode)) != 0) return base::system_error("chmod", path);
  return base::ok();
}

void remove_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
}

base::Result<os::Fd> lock_all_states() {
  TRY(make_folder(kStateRoot, 0700));
  return open_lock(std::string(kStateRoot) + "/.lock", LOCK_EX);
}

base::Result<os::Fd> lock_state(const std::string& cluster) { return open_lock(state_path(cluster, "lock"), LOCK_EX | LOCK_NB); }

}  // namespace phalanx::testbed
