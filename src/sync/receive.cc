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

constexpr const char* kFree = "free";

}  // namespace

base::Result<Receiver> Receiver::begin(Store store, std::string name, Listing manifest) {
  if (!is_copy_name(name)) return base::fail(ErrorKind::kInternal, "a copy cannot have this name");
  Receiver receiver(std::move(store), std::move(name), std::move(manifest));
  receiver.plan();
  TRY(receiver.check_space());
  return receiver;
}

// Two names of one machine, or hosts that share a home directory: the second session finds the copy of the first.
void Receiver::plan() {
  if (base::Result<os::Fd> copy = enter_below(store_.copies(), name_); copy.ok()) {
    std::optional<Listing> there = read_manifest(copy->get());
    if (there && there->bytes() == manifest_.bytes()) {
      made_ = manifest_.entries().size();
      copy_ = std::move(*copy);
      return;
    }
  }
  if (std::optional<Made> free = store_.untouched_free(name_)) {
    before_ = std::move(free->manifest);
    before_seen_ = std::move(free->seen);
  }
  same_as_.assign(manifest_.entries().size(), -1);
  std::unordered_set<std::string_view> asked;
  size_t b = 0;
  for (size_t i = 0; i < manifest_.entries().size(); ++i) {
    const EntryView& entry = manifest_.entries()[i];
    while (before_ && b < before_->entries().size() && before_->entries()[b].path < entry.path) ++b;
    if (before_ && b < before_->entries().size() && before_->entries()[b] == entry) {
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
  find_partial();
}

base::Result<int> Receiver::folder_of(std::string_view path, std::string& name) {
  const size_t slash = path.rfind('/');
  name = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::string_view folder = path.substr(0, slash == std::string::npos ? 0 : slash);
  if (!last_folder_.valid() || folder != last_path_) {
    TRY_ASSIGN(last_folder_, enter_below(tree_.get(), folder));
    last_path_ = folder;
  }
  return last_folder_.get();
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
  seen_.resize(manifest_.entries().size());
  if (!before_) return base::ok();
  (void)::unlinkat(copy_.get(), "manifest", 0);
  std::vector<bool> stays(before_->entries().size(), false);
  for (int64_t b : same_as_)
    if (b >= 0) stays[static_cast<size_t>(b)] = true;
  for (size_t b = before_->entries().size(); b-- > 0;) {
    if (stays[b]) continue;
    const EntryView& entry = before_->entries()[b];
    std::string name;
    TRY_ASSIGN(const int folder, folder_of(entry.path, name));
    if (::unlinkat(folder, name.c_str(), entry.kind == Kind::kFolder ? AT_REMOVEDIR : 0) != 0)
      return disk_error("remove", "copies/" + work + "/tree/" + std::string(entry.path), errno);
  }
  last_folder_.reset();
  return base::ok();
}

base::Status Receiver::make(size_t index) {
  const EntryView& entry = manifest_.entries()[index];
  if (same_as_[index] >= 0) {
    seen_[index] = before_seen_[static_cast<size_t>(same_as_[index])];
    return base::ok();
  }
  std::string name;
  TRY_ASSIGN(const int folder, folder_of(entry.path, name));
  const std::string path = "copies/new." + name_ + "/tree/" + std::string(entry.path);
  if (entry.kind == Kind::kFolder)
    return ::mkdirat(folder, name.c_str(), 0700) == 0 ? base::ok() : base::Status(disk_error("mkdir", path, errno));
  if (entry.kind == Kind::kLink) {
    if (::symlinkat(std::string(entry.content).c_str(), folder, name.c_str()) != 0) return disk_error("symlink", path, errno);
  } else {
    TRY_ASSIGN(const os::Fd from, open_content(entry));
    const os::Fd to(::openat(folder, name.c_str(), kNewFile, entry.kind == Kind::kProgram ? 0700 : 0600));
    if (!to.valid()) return disk_error("open", path, errno);
    TRY(copy_content(entry, from, to, path));
    const timespec times[2] = {time_of(entry.mtime_ns), time_of(entry.mtime_ns)};
    if (::futimens(to.get(), times) != 0) return disk_error("utimens", path, errno);
  }
  TRY_ASSIGN(seen_[index], look_at(folder, name));
  return base::ok();
}

base::Result<bool> Receiver::build(size_t most) {
  if (made_ == manifest_.entries().size() && !started_ && copy_.valid()) {
    (void)::futimens(copy_.get(), nullptr);
    return true;
  }
  if (!started_) TRY(start_tree());
  for (size_t i = 0; i < most && made_ < manifest_.entries().size(); ++i, ++made_) TRY(make(made_));
  if (made_ < manifest_.entries().size()) return false;
  last_folder_.reset();
  errno = 0;
  if (base::Status lists = write_lists(copy_.get(), manifest_, seen_); !lists.ok()) {
    if (errno == ENOSPC || errno == EDQUOT) return disk_error("write", "copies/new." + name_, errno);
    base::Error error = std::move(lists).error();
    error.kind = ErrorKind::kUnfit;
    return std::move(error).within(fmt::format("writing to {}", store_.root()));
  }
  const std::string work = "new." + name_;
  if (::renameat(store_.copies(), work.c_str(), store_.copies(), name_.c_str()) != 0) return disk_error("rename", "copies/" + work, errno);
  return true;
}

}  // namespace phalanx::sync
