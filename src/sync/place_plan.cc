// What a push has to do in its target: decided before anything in it changes.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <unordered_set>

#include <fmt/format.h>

#include "base/try.h"
#include "sync/place.h"
#include "sync/scan.h"
#include "wire/bounds.h"

namespace phalanx::sync {
namespace {

using base::ErrorKind;

constexpr uint64_t kMountRoot = 0x2000;  // STATX_ATTR_MOUNT_ROOT, which older headers do not have

bool leads_to(int folder, const std::string& name, std::string_view content) {
  std::string target(kMostPathBytes + 1, '\0');
  const ssize_t n = ::readlinkat(folder, name.c_str(), target.data(), target.size());
  return n >= 0 && std::string_view(target).substr(0, static_cast<size_t>(n)) == content;
}

}  // namespace

const EntryView* Placer::find(const std::vector<EntryView>& entries, std::string_view path) {
  const auto at = std::lower_bound(entries.begin(), entries.end(), path, [](const EntryView& e, std::string_view p) { return e.path < p; });
  return at != entries.end() && at->path == path ? &*at : nullptr;
}

const EntryView* Placer::recorded(std::string_view path) const { return find(record_.manifest.entries(), path); }

bool Placer::is_listed(const EntryView& entry) const {
  const EntryView* now = find(manifest_.entries(), entry.path);
  return now && (now->kind == Kind::kFolder) == (entry.kind == Kind::kFolder);
}

base::Status Placer::plan() {
  auto of_a_push = [](const EntryView& entry) { return is_of_a_push(entry.path.substr(entry.path.rfind('/') + 1)); };
  if (std::any_of(manifest_.entries().begin(), manifest_.entries().end(), of_a_push))
    return base::fail(ErrorKind::kInternal, "a list has what a push itself leaves in its target");
  if (std::optional<Record> record = read_record(target_.folder.get())) record_ = std::move(*record);
  const size_t n = manifest_.entries().size();
  todo_.assign(n, Todo::kNothing);
  seen_.assign(n, {});
  old_blobs_.assign(n, false);
  ready_.assign(n, false);
  const std::vector<EntryView>& old = record_.manifest.entries();
  size_t b = 0;
  for (size_t i = 0; i < n; ++i) {
    store_.at_work();
    while (b < old.size() && old[b].path < manifest_.entries()[i].path) ++b;
    const bool same_path = b < old.size() && old[b].path == manifest_.entries()[i].path;
    TRY(plan_entry(i, same_path ? &old[b] : nullptr, same_path ? record_.seen[b] : Seen{}));
    TRY(plan_mounts(i));
  }
  std::unordered_set<std::string_view> asked;
  for (size_t i = 0; i < n; ++i) {
    const EntryView& entry = manifest_.entries()[i];
    if (todo_[i] != Todo::kMake || !entry.is_file()) continue;
    ++tree_files_;
    if (uses_[entry.content]++ > 0) tree_bytes_ += entry.size;  // a second place takes a second copy
    if (!asked.insert(entry.content).second) continue;
    if (store_.has_blob(entry.content, entry.size)) {
      old_blobs_[i] = true;
      continue;
    }
    wanted_.push_back(static_cast<uint32_t>(i));
    wanted_bytes_ += entry.size;
  }
  find_partial();
  return plan_removals();
}

base::Status Placer::plan_entry(size_t index, const EntryView* old, const Seen& seen) {
  const EntryView& entry = manifest_.entries()[index];
  struct stat s{};
  const size_t slash = entry.path.rfind('/');
  const bool below_missing = slash != std::string::npos && missing_.contains(entry.path.substr(0, slash));
  const bool there = !below_missing && look(entry.path, s), folder = entry.kind == Kind::kFolder;
  if (there && S_ISDIR(s.st_mode) != folder) {
    if (!may_give_way(entry.path, !folder)) return changed_kind(entry.path, !folder);
    todo_[index] = Todo::kMake;
    return base::ok();
  }
  todo_[index] = Todo::kMake;
  if (!there) {
    if (folder) missing_.insert(entry.path);
    return base::ok();
  }
  if (folder) {
    todo_[index] = Todo::kNothing;
  } else if (entry.kind == Kind::kLink) {
    std::string name;
    TRY_ASSIGN(const int in, folder_of(entry.path, name));
    if (!S_ISLNK(s.st_mode) || !leads_to(in, name, entry.content)) return base::ok();
    todo_[index] = Todo::kNothing;
    TRY_ASSIGN(seen_[index], look_at(in, name));
  } else if (old && old->is_file() && old->content == entry.content && as_pushed(*old, seen, s)) {
    todo_[index] = old->mode == entry.mode && old->mtime_ns == entry.mtime_ns ? Todo::kNothing : Todo::kTouch;
    seen_[index] = {s.st_ino, int64_t{s.st_ctim.tv_sec} * 1'000'000'000 + s.st_ctim.tv_nsec};
  }
  return base::ok();
}

// Contents arrive beside the record and take their places by a rename, which cannot lead to another file system or through a mount.
base::Status Placer::plan_mounts(size_t index) {
  const EntryView& entry = manifest_.entries()[index];
  const size_t slash = entry.path.rfind('/');
  const std::string_view above = entry.path.substr(0, slash == std::string::npos ? 0 : slash);
  const bool folder = entry.kind == Kind::kFolder;
  if (folder && (mounted_.contains(above) || (todo_[index] == Todo::kNothing && is_mounted(entry.path)))) mounted_.insert(entry.path);
  if (folder || todo_[index] != Todo::kMake || !mounted_.contains(above)) return base::ok();
  return base::fail(ErrorKind::kUnfit, fmt::format("{}/{} is on another file system than {}", target_.path, above, target_.path))
      .with_hint(std::string(wire::kAdviceOnMount));
}

// A device of its own, or where the kernel can tell (Linux 5.8) the place of a mount, also of the same device.
bool Placer::is_mounted(std::string_view path) {
  std::string name;
  struct stat top{}, s{};
  const base::Result<int> above = folder_of(path, name);
  if (!above.ok() || ::fstat(target_.folder.get(), &top) != 0 || ::fstatat(*above, name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0)
    return false;
  struct statx more{};
  const bool known = ::statx(*above, name.c_str(), AT_SYMLINK_NOFOLLOW, 0, &more) == 0;
  return s.st_dev != top.st_dev || (known && (more.stx_attributes & kMountRoot) != 0);
}

base::Status Placer::plan_removals() {
  const std::vector<EntryView>& old = record_.manifest.entries();
  for (size_t b = 0; b < old.size(); ++b) {
    struct stat s{};
    if (is_listed(old[b]) || !look(old[b].path, s)) continue;
    gone_.push_back(b);
    if (!remove_ && old[b].kind != Kind::kFolder) ++stayed_;
  }
  return base::ok();
}

base::Error Placer::changed_kind(std::string_view path, bool is_folder) const {
  return base::fail(ErrorKind::kUnfit, fmt::format("{}/{} is {}, and not so in the directory that is pushed", target_.path, path,
                                                   is_folder ? "a directory" : "no directory"))
      .with_hint(std::string(remove_ ? wire::kAdviceOnKind : wire::kAdviceOnPushedKind));
}

// Whether --delete removes all of what stands where the list has something of another kind.
bool Placer::may_give_way(std::string_view path, bool folder) {
  struct stat s{};
  const EntryView* old = recorded(path);
  if (!remove_ || !old || !look(path, s)) return false;
  if (!folder) return as_pushed(*old, record_.seen[static_cast<size_t>(old - record_.manifest.entries().data())], s);
  base::Result<os::Fd> here = enter_below(target_.folder.get(), path);
  return here.ok() && all_as_pushed(here->get(), std::string(path));
}

bool Placer::all_as_pushed(int folder, const std::string& path) const {
  base::Result<std::vector<std::string>> names = names_in(folder);
  if (!names.ok()) return false;
  for (const std::string& name : *names) {
    const EntryView* old = recorded(path + "/" + name);
    struct stat s{};
    if (!old || ::fstatat(folder, name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) return false;
    if (S_ISDIR(s.st_mode)) {
      base::Result<os::Fd> below = enter_below(folder, name);
      if (old->kind != Kind::kFolder || !below.ok() || !all_as_pushed(below->get(), std::string(old->path))) return false;
    } else if (!as_pushed(*old, record_.seen[static_cast<size_t>(old - record_.manifest.entries().data())], s)) {
      return false;
    }
  }
  return true;
}

base::Result<int> Placer::folder_of(std::string_view path, std::string& name) {
  const size_t slash = path.rfind('/');
  name = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::string_view folder = path.substr(0, slash == std::string::npos ? 0 : slash);
  if (!last_folder_.valid() || folder != last_path_) {
    last_folder_.reset();
    TRY_ASSIGN(last_folder_, enter_below(target_.folder.get(), folder));
    last_path_ = folder;
  }
  return last_folder_.get();
}

bool Placer::look(std::string_view path, struct stat& s) {
  std::string name;
  const base::Result<int> folder = folder_of(path, name);
  return folder.ok() && ::fstatat(*folder, name.c_str(), &s, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace phalanx::sync
