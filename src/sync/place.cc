// The order in which a push changes its target: contents that an earlier session left are checked; the record tells what is about to
// come; what goes is removed; entries take their places; folders get their modes and times; the record is complete; the folder of what
// arrived goes.
#include "sync/place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <unordered_set>

#include <fmt/format.h>

#include "base/try.h"
#include "sync/scan.h"
#include "wire/bounds.h"

namespace phalanx::sync {
namespace {

using base::ErrorKind;

constexpr const char* kNewLink = "new.link";
constexpr const char* kNewCopy = "new.copy";
constexpr int kMostWaiting = 16;  // sessions
constexpr const char* kMadeMark = "target-made";
constexpr size_t kRest = ~size_t{0};

// Whether this session or an interrupted one before it has made the target, which is 0700 until everything is in its place.
bool is_made_by_a_push(const Store& store, const Target& target) {
  if (!target.made) return ::faccessat(store.top(), kMadeMark, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  const os::Fd mark(::openat(store.top(), kMadeMark, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  return true;
}

// Of a session that cannot begin: nothing arrives there.
void remove_if_empty(const Store& store, const Target& target) {
  (void)::unlinkat(store.top(), "blobs", AT_REMOVEDIR);
  (void)::unlinkat(store.top(), "copies", AT_REMOVEDIR);
  struct stat s{};
  if (::fstatat(store.top(), "blobs", &s, AT_SYMLINK_NOFOLLOW) == 0) return;
  (void)::unlinkat(store.top(), kMadeMark, 0);
  (void)::unlinkat(store.top(), "lock", 0);
  (void)::unlinkat(target.folder.get(), kIncoming, AT_REMOVEDIR);
  if (target.made) (void)::rmdir(target.path.c_str());
}

}  // namespace

base::Result<std::unique_ptr<Placer>> Placer::begin(Store store, Target target, Listing manifest, uint32_t mode, bool remove) {
  if (!manifest.with_modes() || (mode & ~kModes) != 0) return base::fail(ErrorKind::kInternal, "a malformed list of what is pushed");
  target.made = is_made_by_a_push(store, target);
  std::unique_ptr<Placer> placer(new Placer(std::move(store), std::move(target), std::move(manifest), mode, remove));
  base::Status planned = placer->plan();
  if (planned.ok()) planned = placer->check_space();
  if (planned.ok()) return placer;
  remove_if_empty(placer->store_, placer->target_);
  return std::move(planned).error();
}

Placer::~Placer() {
  while (placing_ && !over_ && build(kRest).ok()) {}
}

base::Error Placer::target_error(const char* doing, std::string_view path, int error_number) const {
  base::Error error = base::system_error(doing, target_.path + "/" + std::string(path), error_number);
  error.kind = ErrorKind::kUnfit;
  return error;
}

base::Result<bool> Placer::build(size_t most) {
  for (size_t i = 0; i < most && !over_; ++i) {
    store_.at_work();
    if (base::Status made = step(done_); !made.ok()) {
      placing_ = false;
      return std::move(made).error();
    }
    ++done_;
  }
  return over_;
}

base::Status Placer::step(size_t at) {
  const size_t n = manifest_.entries().size(), removals = remove_ ? gone_.size() : 0;
  if (at < n) return check_arrived(at);
  at -= n;
  if (at == 0) return write_pending();
  if (at <= removals) return remove_one(gone_[removals - at]);
  at -= removals + 1;
  if (at == 0) return kinds_change_ ? write_merged(Moment::kRemoved) : base::ok();
  at -= 1;
  if (at < n) return make(at);
  if (at < 2 * n) return finish_folder(2 * n - 1 - at);
  return finish();
}

base::Status Placer::check_arrived(size_t index) {
  if (!old_blobs_[index]) return base::ok();
  static char buffer[128 << 10];
  const EntryView& entry = manifest_.entries()[index];
  TRY_ASSIGN(const os::Fd file, open_content(entry));
  base::Sha256 hash;
  for (;;) {
    const os::IoStep step = os::read_step(file.get(), buffer, sizeof(buffer));
    if (step.kind == os::IoStep::kEnd) break;
    if (step.kind != os::IoStep::kBytes) return target_error("read", kIncoming, step.error_number);
    hash.update(std::string_view(buffer, step.bytes));
    store_.at_work();
  }
  if (hash.bytes() == entry.content) return base::ok();
  TRY_ASSIGN(const int blobs, store_.blob_folder(entry.content));
  (void)::unlinkat(blobs, hex_of(entry.content).c_str(), 0);
  return base::fail(ErrorKind::kUnfit, fmt::format("{} was damaged on the disk of this host after it had arrived", entry.path))
      .with_hint(std::string(wire::kAdviceOnArrived));
}

// Nobody else can enter the folder that it lies in, so it may have its mode already.
base::Status Placer::arrived(uint32_t index, const os::Fd& file) {
  const EntryView& entry = manifest_.entries()[index];
  if (uses_[entry.content] != 1 || (entry.mode & S_IRUSR) == 0) return base::ok();
  struct stat s{};
  const timespec times[2] = {time_of(entry.mtime_ns), time_of(entry.mtime_ns)};
  if (::futimens(file.get(), times) != 0 || ::fchmod(file.get(), entry.mode) != 0 || ::fstat(file.get(), &s) != 0)
    return target_error("chmod", entry.path, errno);
  seen_[index] = {s.st_ino, 0};
  ready_[index] = true;
  return base::ok();
}

// A session that ends after this has its files recognised by the next one.
base::Status Placer::write_pending() {
  placing_ = true;
  for (size_t i = 0; i < manifest_.entries().size(); ++i) {
    const EntryView& entry = manifest_.entries()[i];
    if (todo_[i] != Todo::kMake || !entry.is_file() || ready_[i] || uses_[entry.content] != 1) continue;
    struct stat s{};
    const std::string hex = hex_of(entry.content);
    if (::fstatat(store_.blobs(), (hex.substr(0, 2) + "/" + hex).c_str(), &s, AT_SYMLINK_NOFOLLOW) == 0) seen_[i] = {s.st_ino, 0};
  }
  return write_merged(Moment::kPending);
}

base::Status Placer::remove_one(size_t b) {
  const EntryView& entry = record_.manifest.entries()[b];
  struct stat s{};
  std::string name;
  const base::Result<int> folder = folder_of(entry.path, name);
  if (!folder.ok() || ::fstatat(*folder, name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) return base::ok();
  const EntryView* next = find(manifest_.entries(), entry.path);
  if (next && (next->kind == Kind::kFolder) == S_ISDIR(s.st_mode)) return base::ok();
  if (entry.kind != Kind::kFolder && !as_pushed(entry, record_.seen[b], s)) {
    if (next) return changed_kind(entry.path, S_ISDIR(s.st_mode));
    ++stayed_;
    return base::ok();
  }
  const int how = entry.kind == Kind::kFolder ? AT_REMOVEDIR : 0;
  int left = ::unlinkat(*folder, name.c_str(), how);
  if (left != 0 && errno == EACCES && ::fchmod(*folder, 0700) == 0) left = ::unlinkat(*folder, name.c_str(), how);
  const bool may_stay = how != 0 && !next;  // where something else is in it
  if (left != 0 && !may_stay) return target_error("remove", entry.path, errno).with_hint(std::string(wire::kAdviceOnKind));
  if (how == 0) ++removed_;
  return base::ok();
}

base::Status Placer::make(size_t index) {
  const EntryView& entry = manifest_.entries()[index];
  if (entry.kind != Kind::kFolder && todo_[index] == Todo::kNothing) return base::ok();
  std::string name;
  TRY_ASSIGN(const int folder, folder_of(entry.path, name));
  if (entry.kind == Kind::kFolder) {
    if (todo_[index] == Todo::kMake && ::mkdirat(folder, name.c_str(), 0700) != 0) return target_error("mkdir", entry.path, errno);
    struct stat s{};
    if (::fstatat(folder, name.c_str(), &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(s.st_mode) && (s.st_mode & 0700) != 0700)
      (void)::fchmodat(folder, name.c_str(), (s.st_mode & kModes) | 0700, AT_SYMLINK_NOFOLLOW);
    return base::ok();
  }
  if (entry.is_file()) {
    TRY(make_file(index, folder, name));
  } else {
    (void)::unlinkat(store_.top(), kNewLink, 0);
    if (::symlinkat(std::string(entry.content).c_str(), store_.top(), kNewLink) != 0 ||
        ::renameat(store_.top(), kNewLink, folder, name.c_str()) != 0)
      return target_error("symlink", entry.path, errno);
  }
  TRY_ASSIGN(seen_[index], look_at(folder, name));
  return base::ok();
}

base::Status Placer::make_file(size_t index, int folder, const std::string& name) {
  const EntryView& entry = manifest_.entries()[index];
  const timespec times[2] = {time_of(entry.mtime_ns), time_of(entry.mtime_ns)};
  if (todo_[index] == Todo::kTouch) {
    const os::Fd file(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    const bool unreadable = !file.valid() && errno == EACCES;  // its own mode says so: by its name then
    const bool done = unreadable ? ::fchmodat(folder, name.c_str(), entry.mode, AT_SYMLINK_NOFOLLOW) == 0 &&
                                       ::utimensat(folder, name.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0
                                 : file.valid() && ::fchmod(file.get(), entry.mode) == 0 && ::futimens(file.get(), times) == 0;
    return done ? base::ok() : base::Status(target_error("chmod", entry.path, errno));
  }
  TRY_ASSIGN(const int blobs, store_.blob_folder(entry.content));
  std::string arrived = hex_of(entry.content);
  if (ready_[index])
    return ::renameat(blobs, arrived.c_str(), folder, name.c_str()) == 0 ? base::ok()
                                                                         : base::Status(target_error("rename", entry.path, errno));
  TRY_ASSIGN(os::Fd file, open_content(entry));
  if (--uses_[entry.content] > 0) {  // another place needs it too
    (void)::unlinkat(blobs, kNewCopy, 0);
    os::Fd copy(::openat(blobs, kNewCopy, kNewFile, 0600));
    if (!copy.valid()) return target_error("open", entry.path, errno);
    TRY(copy_content(entry, file, copy, kNewCopy));
    file = std::move(copy);
    arrived = kNewCopy;
  }
  if (::fchmod(file.get(), entry.mode) != 0 || ::futimens(file.get(), times) != 0) return target_error("chmod", entry.path, errno);
  if (::renameat(blobs, arrived.c_str(), folder, name.c_str()) != 0) return target_error("rename", entry.path, errno);
  return base::ok();
}

// From the deepest up: what comes into a folder changes its time.
base::Status Placer::finish_folder(size_t index) {
  const EntryView& entry = manifest_.entries()[index];
  if (entry.kind != Kind::kFolder) return base::ok();
  std::string name;
  TRY_ASSIGN(const int above, folder_of(entry.path, name));
  TRY_ASSIGN(const os::Fd folder, enter_below(above, name));
  const timespec times[2] = {time_of(entry.mtime_ns), time_of(entry.mtime_ns)};
  if (::futimens(folder.get(), times) != 0 || ::fchmod(folder.get(), entry.mode) != 0) return target_error("chmod", entry.path, errno);
  return base::ok();
}

base::Status Placer::finish() {
  over_ = true;
  last_folder_.reset();
  TRY(write_merged(Moment::kRemoved));
  if (target_.made) (void)::fchmod(target_.folder.get(), mode_ | 0700);
  return remove_incoming();
}

// Sessions that wait look for the lock below its name, so the folder loses that first, while the lock is held: whoever comes next makes a
// new one. Who had opened the folder before may yet put a lock into it, once. Ours goes before anything is removed: NFS keeps a name for a
// file that is open. What a session left that was killed while
// it removed its folder goes too.
base::Status Placer::remove_incoming() {
  const int target = target_.folder.get();
  struct stat s{};
  if (::fstat(store_.top(), &s) != 0) return target_error("stat", kIncoming, errno);
  const std::string leaving = kLeaving + fmt::format("{:x}", s.st_ino);  // no two folders that are there have the same
  if (::renameat(target, kIncoming, target, leaving.c_str()) != 0) return target_error("rename", kIncoming, errno);
  { const Store closed = std::move(store_); }
  TRY_ASSIGN(const std::vector<std::string> names, names_in(target));
  for (const std::string& name : names) {
    bool gone = !name.starts_with(kLeaving);
    for (int i = 0; i < kMostWaiting && !gone; ++i) gone = remove_tree(target, name);
    if (!gone) return target_error("remove", name, ENOTEMPTY);
  }
  return base::ok();
}

// What the list has, and what earlier pushes have put there and is not in it. Until everything that goes is gone, a path whose kind changes
// is recorded as it was, with what lies below it, and without what will: nothing in a list lies below a file, and what is there must stay
// known to the next session.
base::Status Placer::write_merged(Moment moment) {
  const std::vector<EntryView>& listed = manifest_.entries();
  std::vector<EntryView> entries;
  std::vector<Seen> seen;
  std::unordered_set<std::string_view> hidden;  // recorded as a file yet, or below one
  size_t i = 0, total = listed.size();
  auto take_listed = [&](const std::string_view* before) {
    for (; i < listed.size() && (!before || listed[i].path < *before); ++i) {
      const size_t slash = listed[i].path.rfind('/');
      if (slash != std::string_view::npos && hidden.contains(listed[i].path.substr(0, slash))) {
        hidden.insert(listed[i].path);
        continue;
      }
      entries.push_back(listed[i]);
      seen.push_back(seen_[i]);
    }
  };
  kinds_change_ = false;
  for (size_t b : gone_) {
    const EntryView& entry = record_.manifest.entries()[b];
    struct stat s{};
    take_listed(&entry.path);
    const bool replaced = i < listed.size() && listed[i].path == entry.path;
    if (replaced && moment == Moment::kRemoved) continue;
    if (!replaced && ((moment == Moment::kRemoved && !look(entry.path, s)) || total >= kMostEntries)) continue;
    if (replaced) {
      ++i;
      kinds_change_ = true;
      if (entry.kind != Kind::kFolder) hidden.insert(entry.path);
    } else {
      ++total;
    }
    entries.push_back(entry);
    seen.push_back(record_.seen[b]);
  }
  take_listed(nullptr);
  return write_record(target_.folder.get(), entries, seen);
}

}  // namespace phalanx::sync
