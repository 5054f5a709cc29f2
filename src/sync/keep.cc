// What of a store stays: the end of a copy's run, and the removal of what is old.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <unordered_set>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "os/clock.h"
#include "sync/store.h"

namespace phalanx::sync {
namespace {

const std::string kNew = "new.";
constexpr const char* kFree = "free";
const std::string kLate = "late-";  // and the name of the copy that could not be made from it
constexpr const char* kPycache = "__pycache__";
constexpr const char* kBlobsTended = "blobs-tended";
constexpr int64_t kTendBlobs_s = 24 * 3600;
constexpr int64_t kBillion = 1'000'000'000;

// Holds what is below `folder` against the manifest; `found` counts the entries that were met.
class Comparison {
 public:
  Comparison(const Listing& manifest, const std::vector<Seen>& seen) : manifest_(manifest), seen_(seen) {}

  bool same(int folder, std::string_view path) {
    base::Result<std::vector<std::string>> names = names_in(folder);
    if (!names.ok()) return false;
    std::vector<const std::string*> sorted;
    for (const std::string& name : *names) sorted.push_back(&name);
    std::sort(sorted.begin(), sorted.end(), [](const std::string* a, const std::string* b) { return *a < *b; });
    for (const std::string* one : sorted) {
      const std::string& name = *one;
      if (path.empty()) wanted_ = name;
      else (wanted_ = path).append("/").append(name);
      const EntryView* entry = find(wanted_);
      if (!entry && name == kPycache && remove_tree(folder, name)) continue;
      if (!entry || !same_entry(folder, name, *entry)) return false;
    }
    return true;
  }
  size_t found() const { return found_; }

 private:
  // Names that come in order are found at once.
  const EntryView* find(const std::string& path) {
    const std::vector<EntryView>& all = manifest_.entries();
    if (next_ >= all.size() || all[next_].path != path)
      next_ = static_cast<size_t>(std::lower_bound(all.begin(), all.end(), path,
                                                   [](const EntryView& entry, const std::string& wanted) { return entry.path < wanted; }) -
                                  all.begin());
    return next_ < all.size() && all[next_].path == path ? &all[next_++] : nullptr;
  }

  bool same_entry(int folder, const std::string& name, const EntryView& entry) {
    ++found_;
    struct stat s{};
    if (::fstatat(folder, name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0 || s.st_uid != user_) return false;
    if (entry.kind == Kind::kFolder) {
      os::Fd below(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      return (s.st_mode & 07777) == 0700 && below.valid() && same(below.get(), entry.path);
    }
    const Seen& seen = seen_[static_cast<size_t>(&entry - manifest_.entries().data())];
    const Seen now{s.st_ino, int64_t{s.st_ctim.tv_sec} * kBillion + s.st_ctim.tv_nsec};
    return S_ISLNK(s.st_mode) == (entry.kind == Kind::kLink) && (S_ISLNK(s.st_mode) || S_ISREG(s.st_mode)) && now == seen;
  }

  const Listing& manifest_;
  const std::vector<Seen>& seen_;
  const uid_t user_ = ::geteuid();
  std::string wanted_;
  size_t next_ = 0;  // the entry behind the one that was found last
  size_t found_ = 0;
};

void add_contents(int copy, std::unordered_set<std::string>& contents) {
  if (std::optional<Listing> manifest = read_manifest(copy))
    for (const EntryView& entry : manifest->entries())
      if (entry.is_file()) contents.emplace(entry.content);
}

// Its lists, if everything is as it was made. manifest: where it has been read already.
std::optional<Made> as_made(const os::Fd& copy, std::optional<Listing> manifest = std::nullopt) {
  if (!manifest) manifest = read_manifest(copy.get());
  if (!manifest) return std::nullopt;
  std::optional<std::vector<Seen>> seen = read_seen(copy.get(), manifest->entries().size());
  base::Result<os::Fd> tree = enter_below(copy.get(), "tree");
  if (!seen || !tree.ok()) return std::nullopt;
  Comparison comparison(*manifest, *seen);
  if (!comparison.same(tree->get(), "") || comparison.found() != manifest->entries().size()) return std::nullopt;
  return Made{*std::move(manifest), *std::move(seen)};
}

bool is_blob_name(std::string_view name) {
  return name.size() == 2 * kDigestBytes && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

bool Store::untouched(const std::string& name) const {
  base::Result<os::Fd> copy = enter_below(copies(), name);
  return copy.ok() && as_made(*copy);
}

const Listing* Store::free_list() {
  if (base::Result<os::Fd> free = enter_below(top(), kFree); free.ok() && !free_list_) free_list_ = read_manifest(free->get());
  return free_list_ ? &*free_list_ : nullptr;
}

std::optional<Made> Store::untouched_free(const std::string& next) {
  base::Result<os::Fd> free = enter_below(top(), kFree);
  if (!free.ok()) return std::nullopt;
  std::optional<Made> made = as_made(*free, std::move(free_list_));
  free_list_.reset();
  if (made) return made;
  // Somebody worked on in it after its run: that is not ours to remove, nor code for the next run.
  (void)::renameat(top(), kFree, copies(), (kLate + next).c_str());
  return std::nullopt;
}

base::Result<bool> Store::release(const std::string& name) {
  if (!is_copy_name(name)) return base::fail(base::ErrorKind::kInternal, "a copy cannot have this name");
  struct stat s{};
  // It was interrupted before it was complete, or released by another name of this machine.
  if (::fstatat(copies(), name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) {
    (void)remove_tree(copies(), kNew + name);
    return false;
  }
  if (!untouched(name)) return true;
  if (untouched_free(name)) {
    // Gone under its name before anything in it is: what is left of it would look like one that somebody wrote into.
    const std::string leaving = kNew + name;
    if (::renameat(top(), kFree, copies(), leaving.c_str()) != 0 || !remove_tree(copies(), leaving))
      return base::system_error("remove", root_ + "/" + kFree);
  }
  if (::renameat(copies(), name.c_str(), top(), kFree) != 0) return base::system_error("rename", root_ + "/copies/" + name);
  return false;
}

void Store::tidy(const CopyKeeping& keeping, int64_t wall_ns, const CopyRemoved& removed) {
  base::Result<std::vector<std::string>> names = names_in(copies());
  if (!names.ok()) return;
  std::vector<std::pair<int64_t, std::string>> old;  // by their last use
  for (const std::string& name : *names) {
    struct stat s{};
    if (name.starts_with(kNew)) {
      if (!keeping.list_only) (void)remove_tree(copies(), name);
    } else if (is_copy_name(name) && ::fstatat(copies(), name.c_str(), &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(s.st_mode) &&
               s.st_uid == ::geteuid()) {
      old.emplace_back(s.st_mtim.tv_sec, name);
    }
  }
  std::sort(old.rbegin(), old.rend());
  std::vector<std::string> going;
  for (size_t i = keeping.whatever_age; i < old.size(); ++i)
    if (wall_ns / kBillion - old[i].first > keeping.unused_s) going.push_back(old[i].second);
  for (const std::string& name : going) {
    const std::string leaving = kNew + name;
    removed(root_ + "/copies/" + name, "");
    if (keeping.list_only) continue;
    // It is gone under its name before anything in it is.
    if (::renameat(copies(), name.c_str(), copies(), leaving.c_str()) != 0 || !remove_tree(copies(), leaving))
      removed(root_ + "/copies/" + name, "part of it could not be removed");
  }
  remove_unused_blobs(keeping, wall_ns, going, removed);
}

// A blob that no copy tells of has not been needed since its last copy went, or came with a copy that was cut off: after `unused_s` it
// goes.
void Store::remove_unused_blobs(const CopyKeeping& keeping, int64_t wall_ns, const std::vector<std::string>& going,
                                const CopyRemoved& removed) {
  struct stat tended{};
  const int64_t now_s = wall_ns / kBillion;
  const bool lately = ::fstatat(top(), kBlobsTended, &tended, AT_SYMLINK_NOFOLLOW) == 0 && now_s - tended.st_mtim.tv_sec < kTendBlobs_s &&
                      tended.st_mtim.tv_sec <= now_s;
  if (lately && keeping.whatever_age > 0) return;
  std::unordered_set<std::string> used;
  base::Result<std::vector<std::string>> names = names_in(copies());
  if (!names.ok()) return;
  for (const std::string& name : *names)
    if (std::find(going.begin(), going.end(), name) == going.end())
      if (base::Result<os::Fd> copy = enter_below(copies(), name); copy.ok()) add_contents(copy->get(), used);
  if (base::Result<os::Fd> free = enter_below(top(), kFree); free.ok()) add_contents(free->get(), used);
  std::unordered_set<std::string> used_names;
  for (const std::string& digest : used) used_names.insert(hex_of(digest));
  uint64_t bytes = 0;
  size_t count = 0;
  base::Result<std::vector<std::string>> folders = names_in(blobs());
  for (const std::string& folder : folders.ok() ? *folders : std::vector<std::string>{}) {
    base::Result<os::Fd> here = enter_below(blobs(), folder);
    if (!here.ok()) continue;
    base::Result<std::vector<std::string>> blobs = names_in(here->get());
    for (const std::string& blob : blobs.ok() ? *blobs : std::vector<std::string>{}) {
      struct stat s{};
      if (::fstatat(here->get(), blob.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode) || s.st_uid != ::geteuid()) continue;
      const bool cut_off = blob.starts_with(kNew);  // nobody writes it: the lock is ours
      const bool unused = is_blob_name(blob) && !used_names.count(blob) && now_s - s.st_mtim.tv_sec > keeping.unused_s;
      if (!cut_off && !unused) continue;
      if (!keeping.list_only && ::unlinkat(here->get(), blob.c_str(), 0) != 0) continue;
      bytes += static_cast<uint64_t>(s.st_size);
      ++count;
    }
  }
  if (count > 0) removed(base::counted("{}/blobs ({} files, {})", root_, count, base::format_bytes(bytes)), "");
  if (keeping.list_only) return;
  os::Fd mark(::openat(top(), kBlobsTended, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  const timespec now[2] = {{static_cast<time_t>(now_s), 0}, {static_cast<time_t>(now_s), 0}};
  if (mark.valid()) (void)::futimens(mark.get(), now);
}

}  // namespace phalanx::sync
