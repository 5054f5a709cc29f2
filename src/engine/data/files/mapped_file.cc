#include "engine/data/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/unicode.h"
#include "engine/comm/fingerprint.h"
#include "engine/data/files/cut_files.h"
#include "os/fd.h"

namespace phalanx::engine::data {
namespace {

base::Error cannot_read(const std::string& path, std::string why) {
  return base::fail(base::ErrorKind::kConfig, fmt::format("cannot read the data file {}", base::quote(path))).because(std::move(why));
}

}  // namespace

base::Result<MappedFile> MappedFile::open(const std::string& path) {
  os::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a FIFO would wait for its writer
  struct stat info{};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return cannot_read(path, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return cannot_read(path, S_ISDIR(info.st_mode) ? "it is a folder" : "it is not a regular file");
  MappedFile file;
  file.path_ = path;
  file.device_ = info.st_dev;
  file.inode_ = info.st_ino;
  if (info.st_size == 0) return file;
  const auto size = static_cast<size_t>(info.st_size);
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) return cannot_read(path, std::strerror(errno));
  file.bytes_ = std::string_view(static_cast<const char*>(mapped), size);
  remember_mapping(mapped, size, path);
  return file;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  forget_mapping(bytes_.data());
  munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

void MappedFile::swap(MappedFile& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  std::swap(counted_, other.counted_);
}

base::Status MappedFile::intact() const {
  struct stat info{};
  if (stat(path_.c_str(), &info) != 0) return base::ok();  // unlinked: the mapping holds the content
  if (info.st_dev != device_ || info.st_ino != inode_ || static_cast<size_t>(info.st_size) >= bytes_.size()) return base::ok();
  return cannot_read(path_, fmt::format("it has shrunk from {} to {} bytes since it was opened", bytes_.size(), info.st_size))
      .with_hint("write new data to a new file and rename it; do not change a file in use");
}

uint64_t MappedFile::line_of(uint64_t offset) const {
  std::lock_guard lock(counted_->mutex);
  auto& [mutex, from, line] = *counted_;
  const auto lines = [&](uint64_t begin, uint64_t end) {
    return static_cast<uint64_t>(
        std::count(bytes_.begin() + static_cast<std::ptrdiff_t>(begin), bytes_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
  };
  line = offset >= from ? line + lines(from, offset) : line - lines(offset, from);
  from = offset;
  return line;
}

uint64_t MappedFile::fingerprint() const {
  constexpr size_t kPage = 4096, kPages = 64;
  comm::Fingerprint print;
  print.add(static_cast<int64_t>(bytes_.size()));
  const size_t step = std::max(kPage, bytes_.size() / kPages);
  for (size_t at = 0; at < bytes_.size(); at += step) print.add(bytes_.substr(at, kPage));
  return print.value();
}

}  // namespace phalanx::engine::data
