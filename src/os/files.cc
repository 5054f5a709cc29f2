#include "os/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

#include "os/fd.h"

namespace os {

base::Result<std::string> read_file(const std::string& path, size_t max_bytes) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return base::system_error("open", path);
  std::string content;
  char buffer[65536];
  for (;;) {
    IoStep step = read_step(fd.get(), buffer, sizeof(buffer));
    if (step.kind == IoStep::kEnd) return content;
    if (step.kind == IoStep::kError) return base::system_error("read", path, step.error_number);
    if (step.kind == IoStep::kWouldBlock) return base::system_error("read", path, EAGAIN);
    content.append(buffer, step.bytes);
    if (content.size() > max_bytes)
      return base::fail(base::ErrorKind::kConfig, path + " is larger than the limit of " + std::to_string(max_bytes) + " bytes");
  }
}

base::Status write_file_atomic(const std::string& path, std::string_view content, unsigned mode, Durable durable) {
  std::string temporary = path + ".tmp." + std::to_string(::getpid());
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd.valid()) return base::system_error("create", temporary);
  base::Status written = write_all(fd.get(), content, temporary);
  if (written.ok() && durable == Durable::kYes && ::fsync(fd.get()) != 0) written = base::system_error("fsync", temporary);
  if (written.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) written = base::system_error("rename", path);
  if (!written.ok()) ::unlink(temporary.c_str());
  return written;
}

base::Status make_folders(const std::string& path, unsigned mode) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
      if (!is_folder(part)) return base::system_error("mkdir", part);
    }
    if (slash == std::string::npos) break;
  }
  if (!is_folder(path)) return base::system_error("mkdir", path, ENOTDIR);
  return base::ok();
}

bool is_folder(const std::string& path) {
  struct stat s{};
  return ::stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode);
}
bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string current_folder() {
  char buffer[PATH_MAX];
  return ::getcwd(buffer, sizeof(buffer)) ? buffer : "/";
}

std::string self_executable() {
  char buffer[PATH_MAX];
  ssize_t n = ::readlink("/proc/self/exe", buffer, sizeof(buffer));
  return n > 0 ? std::string(buffer, static_cast<size_t>(n)) : "";
}

std::string environment_value(const char* name, std::string_view fallback) {
  const char* value = std::getenv(name);
  return value ? value : std::string(fallback);
}

}  // namespace os
