#include "sync/incoming.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "wire/bounds.h"

namespace phalanx::sync {
namespace {

using base::ErrorKind;

constexpr uint64_t kSpaceReserve = 16 << 20;
constexpr uint64_t kBlock = 4096;  // what a small file takes
constexpr size_t kPiece = 128 << 10;
constexpr uint64_t kLeastPartial = 1 << 20;  // less is sent again
const std::string kNew = "new.";

base::Error changed_meanwhile(const EntryView& entry) {
  return base::fail(ErrorKind::kUnfit, fmt::format("{} was changed while it was copied", entry.path))
      .with_hint(std::string(wire::kAdviceOnArrived));
}

uint64_t on_disk(uint64_t bytes, uint64_t files) { return bytes + files * kBlock; }

}  // namespace

timespec time_of(int64_t ns) {
  timespec t{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  if (t.tv_nsec < 0) {
    t.tv_nsec += 1'000'000'000;
    --t.tv_sec;
  }
  return t;
}

base::Status Incoming::check_space() const {
  struct statvfs disk{};
  if (tree_files_ == 0 || ::fstatvfs(store_.top(), &disk) != 0) return base::ok();
  const uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
  const uint64_t needed = on_disk(wanted_bytes_ + tree_bytes_, wanted_.size() + tree_files_) + kSpaceReserve;
  if (free < needed)
    return base::fail(ErrorKind::kUnfit, fmt::format("the disk of {} has too little free space: {} are needed, {} are free", store_.root(),
                                                     base::format_bytes(needed), base::format_bytes(free)))
        .with_hint(std::string(wire::kAdviceOnSpace));
  const uint64_t inodes = wanted_.size() + tree_files_ + 1024;
  if (disk.f_files > 0 && disk.f_favail < inodes)
    return base::fail(ErrorKind::kUnfit, fmt::format("the disk of {} has too few free inodes: {} are needed, {} are free", store_.root(),
                                                     inodes, uint64_t{disk.f_favail}))
        .with_hint(std::string(wire::kAdviceOnSpace));
  return base::ok();
}

base::Error Incoming::disk_error(const char* doing, const std::string& path, int error_number) const {
  base::Error error = base::system_error(doing, store_.root() + "/" + path, error_number);
  error.kind = ErrorKind::kUnfit;
  struct statvfs disk{};
  if (error_number != ENOSPC && error_number != EDQUOT) return error;
  error.hint = wire::kAdviceOnSpace;
  if (::fstatvfs(store_.top(), &disk) == 0)
    error.message = fmt::format("the disk of {} is full: {} are needed, {} are free", store_.root(),
                                base::format_bytes(on_disk(wanted_bytes_ + tree_bytes_, wanted_.size() + tree_files_)),
                                base::format_bytes(uint64_t{disk.f_bavail} * disk.f_frsize));
  return error;
}

void Incoming::find_partial() {
  for (uint32_t wanted : wanted_) {
    const EntryView& entry = manifest_.entries()[wanted];
    const std::string hex = hex_of(entry.content);
    struct stat s{};
    if (entry.size <= kLeastPartial ||
        ::fstatat(store_.blobs(), (hex.substr(0, 2) + "/" + kNew + hex).c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode))
      continue;
    const auto size = static_cast<uint64_t>(s.st_size);
    if (size < kLeastPartial || size >= entry.size) continue;
    partial_ = {wanted, size};
    wanted_bytes_ -= size;
    return;
  }
}

base::Status Incoming::open_blob() {
  const EntryView& entry = manifest_.entries()[wanted_[next_]];
  TRY_ASSIGN(const int folder, store_.blob_folder(entry.content));
  const std::string name = kNew + hex_of(entry.content);
  const bool goes_on = partial_.bytes > 0 && partial_.entry == wanted_[next_];
  if (!goes_on) (void)::unlinkat(folder, name.c_str(), 0);
  os::Fd file(::openat(folder, name.c_str(), goes_on ? O_RDWR | O_NOFOLLOW | O_CLOEXEC : kNewFile, 0600));
  if (!file.valid()) return disk_error("open", "blobs/" + name, errno);
  writing_.emplace(Writing{folder, std::move(file), name, entry.size, base::Sha256()});
  return goes_on ? read_partial(*writing_) : base::ok();
}

base::Status Incoming::read_partial(Writing& writing) {
  static char buffer[kPiece];
  while (writing.left > manifest_.entries()[partial_.entry].size - partial_.bytes) {
    const uint64_t most = writing.left - (manifest_.entries()[partial_.entry].size - partial_.bytes);
    os::IoStep step = os::read_step(writing.file.get(), buffer, std::min<uint64_t>(most, kPiece));
    if (step.kind != os::IoStep::kBytes) return disk_error("read", "blobs/" + writing.name, step.error_number);
    writing.hash.update(std::string_view(buffer, step.bytes));
    writing.left -= step.bytes;
    store_.at_work();
  }
  return base::ok();
}

base::Status Incoming::close_blob() {
  const EntryView& entry = manifest_.entries()[wanted_[next_]];
  Writing done = std::move(*writing_);
  writing_.reset();
  if (done.hash.bytes() != entry.content) {
    (void)::unlinkat(done.folder, done.name.c_str(), 0);
    mismatch_ = true;
    return changed_meanwhile(entry);
  }
  if (::renameat(done.folder, done.name.c_str(), done.folder, done.name.substr(kNew.size()).c_str()) != 0)
    return disk_error("rename", "blobs/" + done.name, errno);
  return arrived(wanted_[next_++], done.file);
}

// Its hash is known before there is a file, which needs no other name first. What a kill leaves of one is shorter than it should be.
base::Status Incoming::take_whole(std::string_view content) {
  const EntryView& entry = manifest_.entries()[wanted_[next_]];
  base::Sha256 hash;
  hash.update(content);
  mismatch_ = hash.bytes() != entry.content;
  if (mismatch_) return changed_meanwhile(entry);
  TRY_ASSIGN(const int folder, store_.blob_folder(entry.content));
  const std::string name = hex_of(entry.content);
  os::Fd file(::openat(folder, name.c_str(), kNewFile, 0600));
  if (!file.valid() && errno == EEXIST) {  // of another size, or it would not have been asked for
    (void)::unlinkat(folder, name.c_str(), 0);
    file = os::Fd(::openat(folder, name.c_str(), kNewFile, 0600));
  }
  if (!file.valid()) return disk_error("open", "blobs/" + name, errno);
  while (!content.empty()) {
    const os::IoStep step = os::write_step(file.get(), content.data(), content.size());
    if (step.kind != os::IoStep::kBytes) {
      (void)::unlinkat(folder, name.c_str(), 0);
      return disk_error("write", "blobs/" + name, step.error_number);
    }
    content.remove_prefix(step.bytes);
  }
  return arrived(wanted_[next_++], file);
}

base::Status Incoming::arrived(uint32_t, const os::Fd&) { return base::ok(); }

base::Status Incoming::receive(std::string_view bytes) {
  do {
    if (complete()) return bytes.empty() ? base::ok() : base::Status(base::fail(ErrorKind::kInternal, "more was sent than was asked for"));
    const EntryView& entry = manifest_.entries()[wanted_[next_]];
    const bool begun = writing_ || (partial_.bytes > 0 && partial_.entry == wanted_[next_]);
    if (!begun && entry.size <= std::min<uint64_t>(bytes.size(), kPiece)) {
      TRY(take_whole(bytes.substr(0, entry.size)));
      bytes.remove_prefix(entry.size);
      continue;
    }
    if (!writing_) TRY(open_blob());
    while (writing_->left > 0 && !bytes.empty()) {
      const size_t size = std::min<uint64_t>(writing_->left, bytes.size());
      os::IoStep step = os::write_step(writing_->file.get(), bytes.data(), size);
      if (step.kind != os::IoStep::kBytes) {
        const int error = step.error_number;
        (void)::unlinkat(writing_->folder, writing_->name.c_str(), 0);
        return disk_error("write", "blobs/" + writing_->name, error);
      }
      writing_->hash.update(bytes.substr(0, step.bytes));
      writing_->left -= step.bytes;
      bytes.remove_prefix(step.bytes);
    }
    if (writing_->left > 0) return base::ok();
    TRY(close_blob());
  } while (!bytes.empty() || (!complete() && manifest_.entries()[wanted_[next_]].size == 0));
  return base::ok();
}

std::optional<uint64_t> Incoming::begin_content_again() {
  if (!std::exchange(mismatch_, false) || complete() || (partial_.bytes > 0 && partial_.entry == wanted_[next_])) return std::nullopt;
  uint64_t before = 0;
  for (size_t i = 0; i < next_; ++i) before += manifest_.entries()[wanted_[i]].size - (wanted_[i] == partial_.entry ? partial_.bytes : 0);
  return before;
}

base::Result<os::Fd> Incoming::open_content(const EntryView& entry) const {
  TRY_ASSIGN(const int folder, store_.blob_folder(entry.content));
  os::Fd file(::openat(folder, hex_of(entry.content).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file.valid()) return disk_error("open", "blobs/" + hex_of(entry.content), errno);
  return file;
}

base::Status Incoming::copy_content(const EntryView& entry, const os::Fd& from, const os::Fd& to, const std::string& path) {
  static char buffer[kPiece];
  base::Sha256 hash;
  const bool cloned = cloning_ && entry.size >= kPiece && ::ioctl(to.get(), FICLONE, from.get()) == 0;
  if (entry.size >= kPiece && !cloned) cloning_ = false;
  // Of a small one no more is looked at than was copied: its hash speaks for it.
  for (uint64_t left = entry.size; left > 0 || entry.size >= kPiece;) {
    os::IoStep step = os::read_step(from.get(), buffer, sizeof(buffer));
    if (step.kind == os::IoStep::kEnd) break;
    if (step.kind != os::IoStep::kBytes) return disk_error("read", "blobs/" + hex_of(entry.content), step.error_number);
    hash.update(std::string_view(buffer, step.bytes));
    left -= std::min<uint64_t>(left, step.bytes);
    store_.at_work();
    for (size_t done = 0; !cloned && done < step.bytes;) {
      os::IoStep wrote = os::write_step(to.get(), buffer + done, step.bytes - done);
      if (wrote.kind != os::IoStep::kBytes) return disk_error("write", path, wrote.error_number);
      done += wrote.bytes;
    }
  }
  if (hash.bytes() == entry.content) return base::ok();
  const std::string hex = hex_of(entry.content);
  (void)::unlinkat(store_.blobs(), (hex.substr(0, 2) + "/" + hex).c_str(), 0);
  return base::fail(ErrorKind::kUnfit, fmt::format("a stored file was damaged and has been removed: {}",
                                                   store_.root() + "/blobs/" + hex.substr(0, 2) + "/" + hex));
}

}  // namespace phalanx::sync
