#include "engine/checkpoint/checked_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/sha256.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/checkpoint/folder.h"

namespace phalanx::engine::checkpoint {

base::Error CheckedFile::damaged(std::string why) const {
  return base::fail(base::ErrorKind::kConfig, fmt::format("checkpoint file {} is damaged", base::quote(path_, 400)))
      .because(std::move(why));
}

base::Status CheckedFile::open() {
  do fd_ = os::Fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  while (!fd_.valid() && errno == EINTR);
  if (!fd_.valid()) {
    if (errno == ENOENT) return damaged("it is missing");
    if (errno == ENOTDIR) return damaged("it is missing");
    if (errno == ELOOP) return damaged("it is a symbolic link");
    return io_error("open", path_, errno);
  }
  struct stat info{};
  if (fstat(fd_.get(), &info) != 0) return io_error("stat", path_, errno);
  if (!S_ISREG(info.st_mode)) return damaged("it is not a regular file");
  if (static_cast<uint64_t>(info.st_size) != expected_.bytes)
    return damaged(fmt::format("it has {} bytes; the manifest says {}", info.st_size, expected_.bytes));
  return base::ok();
}

base::Status CheckedFile::read(uint64_t offset, std::span<char> out) const {
  while (!out.empty()) {
    const ssize_t got = pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("read", path_, errno).within(fmt::format("reading byte {}", offset));
    if (got == 0) return damaged(fmt::format("it ends at byte {}", offset));
    out = out.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return base::ok();
}

base::Result<SafetensorsHeader> CheckedFile::read_header() const {
  std::string head(std::min<uint64_t>(8, expected_.bytes), '\0');
  TRY(read(0, head));
  auto length = head_length(head, expected_.bytes);
  if (!length.ok()) return damaged(length.error().cause);
  head.resize(*length);
  TRY(read(0, head));
  auto header = parse_safetensors_head(head, expected_.bytes);
  if (!header.ok()) return damaged(header.error().cause);
  return header;
}

base::Status CheckedFile::compare(const std::string& found) const {
  if (found == expected_.sha256) return base::ok();
  return damaged(fmt::format("its SHA-256 is {}…; the manifest says {}…", found.substr(0, 12), base::printable(expected_.sha256, 12)));
}

base::Result<std::string> CheckedFile::read_all(size_t max_bytes) {
  if (expected_.bytes > max_bytes) return damaged(fmt::format("it has {} bytes; the limit is {}", expected_.bytes, max_bytes));
  std::string text(expected_.bytes, '\0');
  TRY(read(0, text));
  TRY(compare(base::sha256_hex(text)));
  verified_ = true;
  return text;
}

base::Status CheckedFile::verify() {
  if (verified_) return base::ok();
  std::string chunk(std::min<uint64_t>(1 << 20, expected_.bytes), '\0');
  base::Sha256 hash;
  for (uint64_t place = 0; place < expected_.bytes; place += chunk.size()) {
    chunk.resize(std::min<uint64_t>(chunk.size(), expected_.bytes - place));
    TRY(read(place, chunk));
    hash.update(chunk);
  }
  TRY(compare(hash.hex()));
  verified_ = true;
  return base::ok();
}

}  // namespace phalanx::engine::checkpoint
