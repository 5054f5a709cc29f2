#include "engine/comm/shm/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace phalanx::engine::comm {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

Mapping::~Mapping() { munmap(data_, size_); }

base::Result<os::Fd> make_segment(size_t bytes) {
  os::Fd fd(memfd_create("phalanx-comm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return base::system_error("memfd_create", "phalanx-comm");
  if (fchmod(fd.get(), 0600) != 0) return base::system_error("fchmod", "a segment");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return base::system_error("ftruncate", fmt::format("{} bytes", bytes));
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return base::system_error("F_ADD_SEALS", "a segment");
  return fd;
}

base::Status reserve(const os::Fd& segment, size_t begin, size_t bytes) {
  if (bytes == 0) return base::ok();
  while (fallocate(segment.get(), 0, static_cast<off_t>(begin), static_cast<off_t>(bytes)) != 0) {
    if (errno == EINTR) continue;
    base::Error error = base::system_error("fallocate", fmt::format("{} bytes", bytes));
    error.kind = base::ErrorKind::kUnfit;
    return error;
  }
  return base::ok();
}

base::Result<std::shared_ptr<Mapping>> map_segment(const os::Fd& segment, size_t bytes) {
  struct stat about{};
  if (fstat(segment.get(), &about) != 0) return base::system_error("fstat", "a segment");
  const int seals = fcntl(segment.get(), F_GET_SEALS);
  if (about.st_size != static_cast<off_t>(bytes) || seals < 0 || (seals & kSeals) != kSeals)
    return base::fail(base::ErrorKind::kInternal,
                      fmt::format("a segment of {} bytes, seals {}, is not the one of {} that was announced", about.st_size, seals, bytes));
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment.get(), 0);
  if (data == MAP_FAILED) return base::system_error("mmap", fmt::format("{} bytes", bytes));
  return std::make_shared<Mapping>(static_cast<char*>(data), bytes);
}

base::Result<os::Fd> open_again(const os::Fd& segment) {
  const std::string path = fmt::format("/proc/self/fd/{}", segment.get());
  os::Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return base::system_error("open", path);
  return fd;
}

}  // namespace phalanx::engine::comm
