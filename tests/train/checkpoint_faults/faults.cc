#include "faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <mutex>
#include <string_view>

namespace phalanx::faults {
namespace {

std::mutex mutex;
std::string folder;  // "": nothing is watched
int fail_at = -1, fail_with = 0, hang_told_to = -1;
Seen seen;
std::function<void(const Call&)> hook;
std::atomic<bool> watching{false}, no_exchange{false};
std::array<std::atomic<bool>, 65536> below;  // descriptors of files below the folder
thread_local bool inside = false;

bool is_below(const char* path) {
  std::lock_guard lock(mutex);
  return !folder.empty() && path && std::string_view(path).starts_with(folder);
}
bool is_below(int fd) { return fd >= 0 && fd < static_cast<int>(below.size()) && below[static_cast<size_t>(fd)]; }
void remember(int fd, bool is) {
  if (fd >= 0 && fd < static_cast<int>(below.size())) below[static_cast<size_t>(fd)] = is;
}

// 0: go on; else what happens instead.
int fault(const char* name, std::string path, bool moves_bytes, const char* to) {
  const Call call{name, std::move(path), moves_bytes, to};
  std::function<void(const Call&)> ask;
  int verdict = 0;
  {
    std::lock_guard lock(mutex);
    if (folder.empty()) return 0;
    if (static_cast<int>(seen.calls.size()) == fail_at && (fail_with != kShort || moves_bytes)) {
      seen.injected = true;
      verdict = fail_with;
    }
    seen.calls.push_back(call);
    ask = hook;
  }
  if (ask) {
    inside = true;
    ask(call);
    inside = false;
  }
  if (verdict == kHang) {
    inside = true;
    (void)!::write(hang_told_to, "h", 1);
    for (;;) ::pause();
  }
  if (verdict > 0) errno = verdict;
  return verdict;
}

template <typename Place>
int fault_at(const char* name, Place place, bool moves_bytes = false, const char* to = "") {
  if (!watching || inside || !is_below(place)) return 0;
  if constexpr (std::is_same_v<Place, int>) return fault(name, "descriptor " + std::to_string(place), moves_bytes, to);
  else return fault(name, place, moves_bytes, to);
}

template <typename Function>
Function* real(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

void watch(const std::string& where, int at, int error) {
  std::lock_guard lock(mutex);
  folder = where;
  fail_at = at;
  fail_with = error;
  seen = {};
  watching = true;
}

Seen stop() {
  std::lock_guard lock(mutex);
  watching = false;
  folder.clear();
  for (auto& one : below) one.store(false, std::memory_order_relaxed);
  return std::move(seen);
}

void tell_hang(int fd) { hang_told_to = fd; }
void refuse_exchange(bool refuse) { no_exchange = refuse; }
void before_each(std::function<void(const Call&)> ask) {
  std::lock_guard lock(mutex);
  hook = std::move(ask);
}

}  // namespace phalanx::faults

using namespace phalanx;
using faults::fault_at;

#define REAL(name) static auto* const next = faults::real(&::name, #name)

extern "C" {

// The saver's thread gives way to training, so on a busy machine it would take ten times as long.
int setpriority(__priority_which_t, id_t, int) noexcept { return 0; }

int open(const char* path, int flags, ...) {
  static auto* const next = reinterpret_cast<int (*)(const char*, int, mode_t)>(dlsym(RTLD_NEXT, "open"));
  va_list more;
  va_start(more, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (fault_at("open", path) > 0) return -1;
  const int fd = next(path, flags, mode);
  if (faults::watching) faults::remember(fd, faults::is_below(path));
  return fd;
}
int openat(int at, const char* path, int flags, ...) {
  static auto* const next = reinterpret_cast<int (*)(int, const char*, int, mode_t)>(dlsym(RTLD_NEXT, "openat"));
  va_list more;
  va_start(more, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
  va_end(more);
  if ((path[0] == '/' ? fault_at("openat", path) : fault_at("openat", at)) > 0) return -1;
  const int fd = next(at, path, flags, mode);
  if (faults::watching) faults::remember(fd, path[0] == '/' ? faults::is_below(path) : faults::is_below(at));
  return fd;
}
int close(int fd) {
  REAL(close);
  faults::remember(fd, false);
  return next(fd);
}
ssize_t read(int fd, void* data, size_t size) {
  REAL(read);
  const int what = fault_at("read", fd, size > 1);
  return what > 0 ? -1 : next(fd, data, what ? size / 2 : size);
}
ssize_t pread(int fd, void* data, size_t size, off_t offset) {
  REAL(pread);
  const int what = fault_at("pread", fd, size > 1);
  return what > 0 ? -1 : next(fd, data, what ? size / 2 : size, offset);
}
ssize_t write(int fd, const void* data, size_t size) {
  REAL(write);
  const int what = fault_at("write", fd, size > 1);
  return what > 0 ? -1 : next(fd, data, what ? size / 2 : size);
}
int fsync(int fd) {
  REAL(fsync);
  return fault_at("fsync", fd) > 0 ? -1 : next(fd);
}
int ftruncate(int fd, off_t size) noexcept {
  REAL(ftruncate);
  return fault_at("ftruncate", fd) > 0 ? -1 : next(fd, size);
}
int fallocate(int fd, int mode, off_t offset, off_t size) {
  REAL(fallocate);
  return fault_at("fallocate", fd) > 0 ? -1 : next(fd, mode, offset, size);
}
int fcntl(int fd, int command, ...) {
  static auto* const next = reinterpret_cast<int (*)(int, int, void*)>(dlsym(RTLD_NEXT, "fcntl"));
  va_list more;
  va_start(more, command);
  void* argument = va_arg(more, void*);
  va_end(more);
  return fault_at("fcntl", fd) > 0 ? -1 : next(fd, command, argument);
}
int flock(int fd, int operation) noexcept {
  REAL(flock);
  return fault_at("flock", fd) > 0 ? -1 : next(fd, operation);
}
int fstat(int fd, struct stat* info) noexcept {
  REAL(fstat);
  return fault_at("fstat", fd) > 0 ? -1 : next(fd, info);
}
int stat(const char* path, struct stat* info) noexcept {
  static auto* const next = reinterpret_cast<int (*)(const char*, struct stat*)>(dlsym(RTLD_NEXT, "stat"));
  return fault_at("stat", path) > 0 ? -1 : next(path, info);
}
int lstat(const char* path, struct stat* info) noexcept {
  REAL(lstat);
  return fault_at("lstat", path) > 0 ? -1 : next(path, info);
}
int access(const char* path, int mode) noexcept {
  REAL(access);
  return fault_at("access", path) > 0 ? -1 : next(path, mode);
}
int statvfs(const char* path, struct statvfs* info) noexcept {
  static auto* const next = reinterpret_cast<int (*)(const char*, struct statvfs*)>(dlsym(RTLD_NEXT, "statvfs"));
  return fault_at("statvfs", path) > 0 ? -1 : next(path, info);
}
int mkdir(const char* path, mode_t mode) noexcept {
  REAL(mkdir);
  return fault_at("mkdir", path) > 0 ? -1 : next(path, mode);
}
int unlink(const char* path) noexcept {
  REAL(unlink);
  return fault_at("unlink", path) > 0 ? -1 : next(path);
}
int unlinkat(int at, const char* path, int flags) noexcept {
  REAL(unlinkat);
  return (path[0] == '/' ? fault_at("unlinkat", path) : fault_at("unlinkat", at)) > 0 ? -1 : next(at, path, flags);
}
int rename(const char* from, const char* to) noexcept {
  REAL(rename);
  return fault_at("rename", from, false, to) > 0 ? -1 : next(from, to);
}
int renameat2(int at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  REAL(renameat2);
  if (fault_at("renameat2", from, false, to) > 0) return -1;
  if (faults::no_exchange && (flags & RENAME_EXCHANGE)) return errno = EINVAL, -1;
  return next(at, from, to_at, to, flags);
}
DIR* opendir(const char* path) {
  REAL(opendir);
  if (fault_at("opendir", path) > 0) return nullptr;
  DIR* opened = next(path);
  if (opened && faults::watching) faults::remember(dirfd(opened), faults::is_below(path));
  return opened;
}
DIR* fdopendir(int fd) {
  REAL(fdopendir);
  return fault_at("fdopendir", fd) > 0 ? nullptr : next(fd);
}
struct dirent* readdir(DIR* listing) {
  REAL(readdir);
  return fault_at("readdir", dirfd(listing)) > 0 ? nullptr : next(listing);
}
int closedir(DIR* listing) {
  REAL(closedir);
  faults::remember(dirfd(listing), false);
  return next(listing);
}

}  // extern "C"
