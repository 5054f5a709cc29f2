#include "os/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/try.h"
#include "os/clock.h"
#include "os/fd.h"

namespace phalanx::os {
namespace {

bool means_absent(int error_number) { return error_number == ENOENT || error_number == ENOTDIR; }

// A network file system mounted with `intr` ends calls that a signal interrupts.
template <typename Call>
auto without_interruption(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

base::Result<std::optional<mode_t>> mode_of(const std::string& path) {
  struct stat s{};
  if (without_interruption([&] { return ::stat(path.c_str(), &s); }) == 0) return std::optional<mode_t>(s.st_mode);
  if (means_absent(errno)) return std::optional<mode_t>();
  return base::system_error("stat", path);
}

// A renamed file has its new name for good only when its folder is on the disk. Some file systems cannot sync folders: EINVAL.
base::Status sync_folder(const std::string& path) {
  const std::string folder = path.empty() ? "." : path;
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || (without_interruption([&] { return ::fsync(fd.get()); }) != 0 && errno != EINVAL))
    return base::system_error("fsync", folder);
  return base::ok();
}

}  // namespace

base::Result<std::string> read_rest(const Fd& fd, const std::string& path, size_t max_bytes) {
  std::string content;
  char buffer[65536];
  struct stat s{};
  // A large file: each time that a string grows, it moves, and pages that nobody has touched cost more than their bytes.
  if (max_bytes > sizeof(buffer) && ::fstat(fd.get(), &s) == 0 && S_ISREG(s.st_mode) && s.st_size > static_cast<off_t>(sizeof(buffer)))
    content.reserve(std::min(static_cast<size_t>(s.st_size), max_bytes));
  for (;;) {
    IoStep step = read_step(fd.get(), buffer, sizeof(buffer));
    if (step.kind == IoStep::kEnd) return content;
    if (step.kind == IoStep::kError) return base::system_error("read", path, step.error_number);
    if (step.kind == IoStep::kWouldBlock) return base::system_error("read", path, EAGAIN);
    content.append(buffer, step.bytes);
    if (content.size() > max_bytes)
      return base::fail(base::ErrorKind::kConfig, base::counted("{} is larger than the limit of {} bytes", path, max_bytes));
  }
}

base::Result<std::string> read_file(const std::string& path, size_t max_bytes) {
  Fd fd(without_interruption([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
  if (!fd.valid()) return base::system_error("open", path);
  return read_rest(fd, path, max_bytes);
}

base::Result<Fd> open_regular(int folder, const std::string& name) {
  Fd fd(without_interruption([&] { return ::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK); }));
  if (!fd.valid()) return base::system_error("open", name);
  TRY_ASSIGN(const struct stat s, stat_of(fd, name));
  if (!S_ISREG(s.st_mode)) return base::fail(base::ErrorKind::kConfig, fmt::format("{} is not a regular file", name));
  return fd;
}

base::Result<std::optional<Fd>> open_regular_if_present(int folder, const std::string& name) {
  Fd fd(without_interruption([&] { return ::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK); }));
  if (!fd.valid() && (means_absent(errno) || errno == ELOOP || errno == ENXIO)) return std::optional<Fd>();
  if (!fd.valid()) return base::system_error("open", name);
  TRY_ASSIGN(const struct stat s, stat_of(fd, name));
  if (!S_ISREG(s.st_mode)) return std::optional<Fd>();
  return std::optional<Fd>(std::move(fd));
}

base::Result<std::optional<Fd>> open_regular_if_present(const std::string& path) { return open_regular_if_present(AT_FDCWD, path); }

base::Result<Fd> open_regular(const std::string& path) { return open_regular(AT_FDCWD, path); }

base::Result<size_t> read_at(const Fd& file, const std::string& path, off_t from, char* data, size_t size) {
  size_t got = 0;
  while (got < size) {
    const ssize_t n = without_interruption([&] { return ::pread(file.get(), data + got, size - got, from + static_cast<off_t>(got)); });
    if (n < 0) return base::system_error("read", path);
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  return got;
}

base::Result<std::optional<Fd>> open_regular_below(const std::string& folder, std::string_view name) {
  constexpr int kStep = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Fd at(without_interruption([&] { return ::open(folder.c_str(), kStep); }));
  for (size_t slash = 0; at.valid() && (slash = name.find('/')) != std::string_view::npos; name.remove_prefix(slash + 1)) {
    const std::string part(name.substr(0, slash));
    at = Fd(without_interruption([&] { return ::openat(at.get(), part.c_str(), kStep); }));
  }
  if (!at.valid() && (means_absent(errno) || errno == ELOOP)) return std::optional<Fd>();
  if (!at.valid()) return base::system_error("open", folder);
  return open_regular_if_present(at.get(), std::string(name));
}

base::Result<struct stat> stat_of(const Fd& file, const std::string& path) {
  struct stat s{};
  if (without_interruption([&] { return ::fstat(file.get(), &s); }) != 0) return base::system_error("stat", path);
  return s;
}

bool only_ours(const struct stat& file) { return (file.st_uid == ::getuid() || file.st_uid == 0) && (file.st_mode & 022) == 0; }

bool only_ours_to_change(const std::string& folder) {
  struct stat s{};
  if (::stat(folder.c_str(), &s) != 0 || (s.st_uid != ::getuid() && s.st_uid != 0)) return false;
  return (s.st_mode & 022) == 0 || (s.st_mode & S_ISVTX) != 0;
}

bool private_folder(const std::string& path) {
  if (!make_folders(path).ok()) return false;
  struct stat s{};
  if (::lstat(path.c_str(), &s) != 0 || !S_ISDIR(s.st_mode) || s.st_uid != ::getuid() || (s.st_mode & 077) != 0) return false;
  // The folders above it as they are, not as links name them.
  std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), std::free);
  if (!real) return false;
  for (std::string above = real.get(); above.size() > 1;) {
    above.erase(std::max<size_t>(above.rfind('/'), 1));
    if (!only_ours_to_change(above)) return false;
    if (above == "/") break;
  }
  return true;
}

base::Result<bool> is_present(const std::string& path) {
  TRY_ASSIGN(std::optional<mode_t> mode, mode_of(path));
  return mode.has_value();
}

base::Result<bool> is_present_folder(const std::string& path) {
  TRY_ASSIGN(std::optional<mode_t> mode, mode_of(path));
  return mode && S_ISDIR(*mode);
}

base::Result<std::optional<std::string>> read_if_present(const std::string& path, size_t max_bytes) {
  Fd fd(without_interruption([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
  if (!fd.valid() && means_absent(errno)) return std::optional<std::string>();
  if (!fd.valid()) return base::system_error("open", path);
  TRY_ASSIGN(std::string content, read_rest(fd, path, max_bytes));
  return std::optional(std::move(content));
}

base::Result<std::optional<std::vector<std::string>>> names_if_present(const std::string& folder) {
  DIR* listing = ::opendir(folder.c_str());
  while (!listing && errno == EINTR) listing = ::opendir(folder.c_str());
  if (!listing && errno == ENOENT) return std::optional<std::vector<std::string>>();
  if (!listing) return base::system_error("list", folder);
  std::vector<std::string> names;
  errno = 0;  // the only way in which readdir tells an error from the end
  while (dirent* entry = ::readdir(listing)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  const int failure = errno;
  ::closedir(listing);
  if (failure != 0) return base::system_error("list", folder, failure);
  return std::optional(std::move(names));
}

std::string random_suffix() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number)) number = static_cast<uint64_t>(mono_now().ns);
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(number));
  return text;
}

base::Status write_file_atomic_at(int folder, const std::string& name, std::string_view content, unsigned mode, Durable durable) {
  const std::string temporary = name + ".tmp." + std::to_string(::getpid()) + "." + random_suffix();
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  Fd fd(without_interruption([&] { return ::openat(folder, temporary.c_str(), kFlags, mode); }));
  if (!fd.valid()) return base::system_error("create", temporary);
  base::Status written = write_all(fd.get(), content, temporary);
  if (written.ok() && durable == Durable::kYes && without_interruption([&] { return ::fsync(fd.get()); }) != 0)
    written = base::system_error("fsync", temporary);
  if (written.ok() && ::renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) written = base::system_error("rename", name);
  if (!written.ok()) ::unlinkat(folder, temporary.c_str(), 0);
  if (!written.ok() || durable == Durable::kNo) return written;
  if (folder == AT_FDCWD) return sync_folder(name.substr(0, name.rfind('/') + 1));
  return without_interruption([&] { return ::fsync(folder); }) == 0 ? base::ok() : base::system_error("fsync", "the folder of " + name);
}

base::Status write_file_atomic(const std::string& path, std::string_view content, unsigned mode, Durable durable) {
  return write_file_atomic_at(AT_FDCWD, path, content, mode, durable);
}

base::Status make_folders(const std::string& path, unsigned mode) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string part = path.substr(0, slash);
    if (without_interruption([&] { return ::mkdir(part.c_str(), mode); }) != 0 && errno != EEXIST) {
      const int failure = errno;  // is_folder changes errno
      if (!is_folder(part)) return base::system_error("mkdir", part, failure);
    }
    if (slash == std::string::npos) break;
  }
  TRY_ASSIGN(bool made, is_present_folder(path));
  if (!made) return base::system_error("mkdir", path, ENOTDIR);
  return base::ok();
}

bool is_folder(const std::string& path) {
  struct stat s{};
  return ::stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode);
}
bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string current_folder() {
  char buffer[PATH_MAX];
  return ::getcwd(buffer, sizeof(buffer)) && buffer[0] == '/' ? buffer : "";
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

}  // namespace phalanx::os
