#include "sync/receive.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <unordered_set>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "os/files.h"

namespace phalanx::sync {
namespace {

using base::ErrorKind;

constexpr uint64_t kSpaceReserve = 16 << 20;
constexpr uint64_t kBlock = 4096;  // what a small file takes
constexpr size_t kPiece = 128 << 10;
constexpr const char* kFree = "free";
constexpr int kNewFile = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

uint64_t on_disk(uint64_t bytes, uint64_t files) { return bytes + files * kBlock; }

timespec time_of(int64_t ns) {
  timespec t{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  if (t.tv_nsec < 0) {
    t.tv_nsec += 1'000'000'000;
    --t.tv_sec;
  }
  return t;
}

}  // namespace

base::Result<Receiver> Receiver::begin(Store store, std::string name, Manifest manifest) {
  if (!is_copy_name(name)) return base::fail(ErrorKind::kInternal, "a copy cannot have this name");
  Receiver receiver(std::move(store), std::move(name), std::move(manifest));
  receiver.plan();
  TRY(receiver.check_space());
  return receiver;
}

// Two names of one machine, or hosts that share a home directory: the second session finds the copy of the first.
void Receiver::plan() {
  if (base::Result<os::Fd> copy = enter_below(store_.copies(), name_); copy.ok()) {
    std::optional<Manifest> there = read_manifest(copy->get());
    if (there && there->entries == manifest_.entries) {
      made_ = manifest_.entries.size();
      copy_ = std::move(*copy);
      return;
    }
  }
  if (base::Result<os::Fd> free = enter_below(store_.top(), kFree); store_.has_untouched_free(name_) && free.ok()) {
    before_ = read_manifest(free->get());
    std::optional<std::vector<Seen>> seen = before_ ? read_seen(free->get(), before_->entries.size()) : std::nullopt;
    if (seen) before_seen_ = std::move(*seen);
    else before_.reset();
  }
  same_as_.assign(manifest_.entries.size(), -1);
  std::unordered_set<std::string_view> asked;
  size_t b = 0;
  for (size_t i = 0; i < manifest_.entries.size(); ++i) {
    const Entry& entry = manifest_.entries[i];
    while (before_ && b < before_->entries.size() && before_->entries[b].path < entry.path) ++b;
    if (before_ && b < before_->entries.size() && before_->entries[b] == entry) {
      same_as_[i] = static_cast<int64_t>(b);
      continue;
    }
    if (entry.kind == Kind::kFolder) continue;
    ++tree_files_;
    tree_bytes_ += entry.size;
    if (!entry.is_file() || !asked.insert(entry.content).second || store_.has_blob(entry.content, entry.size)) continue;
    wanted_.push_back(static_cast<uint32_t>(i));
    wanted_bytes_ += entry.size;
  }
}

base::Status Receiver::check_space() const {
  struct statvfs disk{};
  if (tree_files_ == 0 || ::fstatvfs(store_.top(), &disk) != 0) return base::ok();
  const uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
  const uint64_t needed = on_disk(wanted_bytes_ + tree_bytes_, wanted_.size() + tree_files_) + kSpaceReserve;
  if (free < needed)
    return base::fail(ErrorKind::kUnfit, fmt::format("the disk of {} has too little free space: {} are needed, {} are free", store_.root(),
                                                     base::format_bytes(needed), base::format_bytes(free)));
  const uint64_t inodes = wanted_.size() + tree_files_ + 1024;
  if (disk.f_files > 0 && disk.f_favail < inodes)
    return base::fail(ErrorKind::kUnfit, fmt::format("the disk of {} has too few free inodes: {} are needed, {} are free", store_.root(),
                                                     inodes, uint64_t{disk.f_favail}));
  return base::ok();
}

base::Error Receiver::disk_error(const char* doing, const std::string& path, int error_number) const {
  base::Error error = base::system_error(doing, store_.root() + "/" + path, error_number);
  error.kind = ErrorKind::kUnfit;
  struct statvfs disk{};
  if ((error_number == ENOSPC || error_number == EDQUOT) && ::fstatvfs(store_.top(), &disk) == 0)
    error.message = fmt::format("the disk of {} is full: {} are needed, {} are free", store_.root(),
                                base::format_bytes(on_disk(wanted_bytes_ + tree_bytes_, wanted_.size() + tree_files_)),
                                base::format_bytes(uint64_t{disk.f_bavail} * disk.f_frsize));
  return error;
}

base::Status Receiver::open_blob() {
  const Entry& entry = manifest_.entries[wanted_[next_]];
  TRY_ASSIGN(os::Fd folder, store_.blob_folder(entry.content));
  const std::string name = "new." + hex_of(entry.content);
  (void)::unlinkat(folder.get(), name.c_str(), 0);
  os::Fd file(::openat(folder.get(), name.c_str(), kNewFile, 0600));
  if (!file.valid()) return disk_error("open", "blobs/" + name, errno);
  writing_.emplace(Writing{std::move(folder), std::move(file), name, entry.size, base::Sha256()});
  return base::ok();
}

base::Status Receiver::close_blob() {
  const Entry& entry = manifest_.entries[wanted_[next_]];
  Writing done = std::move(*writing_);
  writing_.reset();
  if (done.hash.bytes() != entry.content) {
    (void)::unlinkat(done.folder.get(), done.name.c_str(), 0);
    return base::fail(ErrorKind::kUnfit, entry.path + " was changed while it was copied");
  }
  if (::renameat(done.folder.get(), done.name.c_str(), done.folder.get(), done.name.substr(4).c_str()) != 0)
    return disk_error("rename", "blobs/" + done.name, errno);
  ++next_;
  return base::ok();
}

base::Status Receiver::receive(std::string_view bytes) {
  do {
    if (complete()) return bytes.empty() ? base::ok() : base::Status(base::fail(ErrorKind::kInternal, "more was sent than was asked for"));
    if (!writing_) TRY(open_blob());
    while (writing_->left > 0 && !bytes.empty()) {
      const size_t size = std::min<uint64_t>(writing_->left, bytes.size());
      os::IoStep step = os::write_step(writing_->file.get(), bytes.data(), size);
      if (step.kind != os::IoStep::kBytes) {
        const int error = step.error_number;
        (void)::unlinkat(writing_->folder.get(), writing_->name.c_str(), 0);
        return disk_error("write", "blobs/" + writing_->name, error);
      }
      writing_->hash.update(bytes.substr(0, step.bytes));
      writing_->left -= step.bytes;
      bytes.remove_prefix(step.bytes);
    }
    if (writing_->left > 0) return base::ok();
    TRY(close_blob());
  } while (!bytes.empty() || (!complete() && manifest_.entries[wanted_[next_]].size == 0));
  return base::ok();
}

base::Result<os::Fd> Receiver::folder_of(const std::string& path, std::string& name) {
  const size_t slash = path.rfind('/');
  name = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash);
  if (!last_folder_.valid() || folder != last_path_) {
    TRY_ASSIGN(last_folder_, enter_below(tree_.get(), folder));
    last_path_ = folder;
  }
  return os::Fd(::dup(last_folder_.get()));
}

// The free copy becomes ours: what the new list does not have goes, deepest first.
base::Status Receiver::start_tree() {
  started_ = true;
  const std::string work = "new." + name_;
  (void)remove_tree(store_.copies(), work);
  if (before_ && ::renameat(store_.top(), kFree, store_.copies(), work.c_str()) != 0) {
    before_.reset();
    std::fill(same_as_.begin(), same_as_.end(), -1);
  }
  TRY_ASSIGN(copy_, enter_own(store_.copies(), work));
  TRY_ASSIGN(tree_, enter_own(copy_.get(), "tree"));
  seen_.resize(manifest_.entries.size());
  if (!before_) return base::ok();
  (void)::unlinkat(copy_.get(), "manifest", 0);
  std::vector<bool> stays(before_->entries.size(), false);
  for (int64_t b : same_as_)
    if (b >= 0) stays[static_cast<size_t>(b)] = true;
  for (size_t b = before_->entries.size(); b-- > 0;) {
    if (stays[b]) continue;
    const Entry& entry = before_->entries[b];
    std::string name;
    TRY_ASSIGN(const os::Fd folder, folder_of(entry.path, name));
    if (::unlinkat(folder.get(), name.c_str(), entry.kind == Kind::kFolder ? AT_REMOVEDIR : 0) != 0)
      return disk_error("remove", "copies/" + work + "/tree/" + entry.path, errno);
  }
  last_folder_.reset();
  return base::ok();
}

base::Status Receiver::copy_blob(const Entry& entry, const os::Fd& from, const os::Fd& to) {
  const std::string path = "copies/new." + name_ + "/tree/" + entry.path;
  static char buffer[kPiece];
  base::Sha256 hash;
  const bool cloned = cloning_ && entry.size >= kPiece && ::ioctl(to.get(), FICLONE, from.get()) == 0;
  if (entry.size >= kPiece && !cloned) cloning_ = false;
  for (;;) {
    os::IoStep step = os::read_step(from.get(), buffer, sizeof(buffer));
    if (step.kind == os::IoStep::kEnd) break;
    if (step.kind != os::IoStep::kBytes) return disk_error("read", "blobs/" + hex_of(entry.content), step.error_number);
    hash.update(std::string_view(buffer, step.bytes));
    for (size_t done = 0; !cloned && done < step.bytes;) {
      os::IoStep wrote = os::write_step(to.get(), buffer + done, step.bytes - done);
      if (wrote.kind != os::IoStep::kBytes) return disk_error("write", path, wrote.error_number);
      done += wrote.bytes;
    }
  }
  if (hash.bytes() == entry.content) return base::ok();
  const std::string hex = hex_of(entry.content);
  (void)::unlinkat(store_.blobs(), (hex.substr(0, 2) + "/" + hex).c_str(), 0);
  return base::fail(ErrorKind::kUnfit,
                    "a stored file was damaged and has been removed: " + store_.root() + "/blobs/" + hex.substr(0, 2) + "/" + hex);
}

base::Status Receiver::make(size_t index) {
  const Entry& entry = manifest_.entries[index];
  if (same_as_[index] >= 0) {
    seen_[index] = before_seen_[static_cast<size_t>(same_as_[index])];
    return base::ok();
  }
  std::string name;
  TRY_ASSIGN(const os::Fd folder, folder_of(entry.path, name));
  const std::string path = "copies/new." + name_ + "/tree/" + entry.path;
  if (entry.kind == Kind::kFolder)
    return ::mkdirat(folder.get(), name.c_str(), 0700) == 0 ? base::ok() : base::Status(disk_error("mkdir", path, errno));
  if (entry.kind == Kind::kLink) {
    if (::symlinkat(entry.content.c_str(), folder.get(), name.c_str()) != 0) return disk_error("symlink", path, errno);
  } else {
    TRY_ASSIGN(const os::Fd blobs, store_.blob_folder(entry.content));
    const os::Fd from(::openat(blobs.get(), hex_of(entry.content).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!from.valid()) return disk_error("open", "blobs/" + hex_of(entry.content), errno);
    const os::Fd to(::openat(folder.get(), name.c_str(), kNewFile, entry.kind == Kind::kProgram ? 0700 : 0600));
    if (!to.valid()) return disk_error("open", path, errno);
    TRY(copy_blob(entry, from, to));
    const timespec times[2] = {time_of(entry.mtime_ns), time_of(entry.mtime_ns)};
    if (::futimens(to.get(), times) != 0) return disk_error("set the time of", path, errno);
  }
  TRY_ASSIGN(seen_[index], look_at(folder.get(), name));
  return base::ok();
}

base::Result<bool> Receiver::build(size_t most) {
  if (made_ == manifest_.entries.size() && !started_ && copy_.valid()) {
    (void)::futimens(copy_.get(), nullptr);
    return true;
  }
  if (!started_) TRY(start_tree());
  for (size_t i = 0; i < most && made_ < manifest_.entries.size(); ++i, ++made_) TRY(make(made_));
  if (made_ < manifest_.entries.size()) return false;
  last_folder_.reset();
  errno = 0;
  if (base::Status lists = write_lists(copy_.get(), manifest_, seen_); !lists.ok()) {
    if (errno == ENOSPC || errno == EDQUOT) return disk_error("write", "copies/new." + name_, errno);
    base::Error error = std::move(lists).error();
    error.kind = ErrorKind::kUnfit;
    return std::move(error).within("writing to " + store_.root());
  }
  const std::string work = "new." + name_;
  if (::renameat(store_.copies(), work.c_str(), store_.copies(), name_.c_str()) != 0) return disk_error("rename", "copies/" + work, errno);
  return true;
}

}  // namespace phalanx::sync
