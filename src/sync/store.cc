#include "sync/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "os/clock.h"
#include "os/files.h"
#include "wire/codec.h"

namespace phalanx::sync {
namespace {

using base::ErrorKind;

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kMostRemoveDepth = 256;
constexpr int kMostLooks = 5;
constexpr uint32_t kSeenVersion = 1;

base::Error unfit(base::Error error) {
  error.kind = ErrorKind::kUnfit;
  return error;
}

bool is_own(const struct stat& s) { return S_ISDIR(s.st_mode) && s.st_uid == ::geteuid() && (s.st_mode & 022) == 0; }

// True also if another process that removes the same was first.
bool remove_empty(int parent, const std::string& name) { return ::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT; }

bool remove_inside(const os::Fd& folder, dev_t device, int depth) {
  base::Result<std::vector<std::string>> names = names_in(folder.get());
  if (!names.ok() || depth > kMostRemoveDepth) return false;
  bool all = true;
  for (const std::string& name : *names) {
    if (::unlinkat(folder.get(), name.c_str(), 0) == 0 || errno == ENOENT) continue;
    os::Fd below(::openat(folder.get(), name.c_str(), kFolder));
    struct stat s{};
    if (!below.valid() && errno == EACCES && ::fchmodat(folder.get(), name.c_str(), 0700, AT_SYMLINK_NOFOLLOW) == 0)
      below = os::Fd(::openat(folder.get(), name.c_str(), kFolder));
    if (!below.valid() || ::fstat(below.get(), &s) != 0 || s.st_dev != device || s.st_uid != ::geteuid()) {
      all = false;
      continue;
    }
    if ((s.st_mode & 0700) != 0700) (void)::fchmod(below.get(), 0700);
    all = remove_inside(below, device, depth + 1) && remove_empty(folder.get(), name) && all;
  }
  return all;
}

// Ranks start below it by its path, so nobody else may change what that leads to. A session at its end may remove the folder in the middle
// of this, but not several times in a row.
base::Status check_root(const std::string& root, bool make) {
  base::Status made = base::ok();
  for (int i = 0; i < kMostLooks; ++i) {
    if (make) made = os::make_folders(root);
    if (made.ok() && os::private_folder(root)) return base::ok();
  }
  if (!made.ok()) return unfit(std::move(made).error());
  return base::fail(ErrorKind::kUnfit, fmt::format("{} is not private", root))
      .because("it or a folder above it belongs to another user, can be written by others, or is a link")
      .with_hint("namei -l " + base::shell_quote(root));
}

}  // namespace

bool is_still_at(int parent, const std::string& name, const os::Fd& opened) {
  struct stat there{}, here{};
  return ::fstatat(parent, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && ::fstat(opened.get(), &here) == 0 &&
         there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

base::Result<std::vector<std::string>> names_in(int folder) {
  const int again = ::openat(folder, ".", kFolder);
  DIR* stream = again >= 0 ? ::fdopendir(again) : nullptr;
  if (!stream) return base::system_error("read", "a folder");
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream))
    if (const std::string_view name = entry->d_name; name != "." && name != "..") names.emplace_back(name);
  const int error = errno;
  ::closedir(stream);
  if (error != 0) return base::system_error("read", "a folder", error);
  return names;
}

base::Result<os::Fd> enter_own(int parent, const std::string& name) {
  if (::mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST) return unfit(base::system_error("mkdir", name));
  os::Fd folder(::openat(parent, name.c_str(), kFolder));
  struct stat s{};
  if (!folder.valid() || ::fstat(folder.get(), &s) != 0) return unfit(base::system_error("open", name));
  if (!is_own(s)) return base::fail(ErrorKind::kUnfit, fmt::format("{} belongs to another user, or others may write to it", name));
  return folder;
}

base::Result<os::Fd> enter_below(int folder, std::string_view path) {
  os::Fd at(::openat(folder, ".", kFolder));
  for (std::string_view name : base::split(path, '/')) {
    if (path.empty()) break;
    os::Fd next(::openat(at.get(), std::string(name).c_str(), kFolder));
    if (!next.valid()) return base::system_error("open", path);
    at = std::move(next);
  }
  return at;
}

bool remove_tree(int parent, const std::string& name) {
  os::Fd folder(::openat(parent, name.c_str(), kFolder));
  struct stat s{};
  if (!folder.valid()) return errno == ENOENT;
  if (::fstat(folder.get(), &s) != 0 || s.st_uid != ::geteuid()) return false;
  (void)::fchmod(folder.get(), 0700);
  return remove_inside(folder, s.st_dev, 0) && remove_empty(parent, name);
}

std::string hex_of(std::string_view digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.size());
  for (unsigned char c : digest) hex += {kDigits[c >> 4], kDigits[c & 15]};
  return hex;
}

base::Result<std::optional<Store>> Store::open_in(const std::string& root, bool make) {
  TRY(check_root(root, make));
  Store store;
  store.root_ = root;
  store.top_ = os::Fd(::open(root.c_str(), kFolder));
  if (!store.top_.valid() && errno == ENOENT) return std::optional<Store>();
  if (!store.top_.valid()) return unfit(base::system_error("open", root));
  store.lock_ = os::Fd(::openat(store.top_.get(), "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!store.lock_.valid() && errno == ENOENT) return std::optional<Store>();
  if (!store.lock_.valid()) return unfit(base::system_error("open", root + "/lock"));
  if (::flock(store.lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::optional<Store>();
    return unfit(base::system_error("lock", root + "/lock"));
  }
  // Between the opening and the lock the last session may have removed the folder, or moved it away to remove it (Placer::finish).
  if (!is_still_at(AT_FDCWD, root, store.top_) || !is_still_at(store.top_.get(), "lock", store.lock_)) return std::optional<Store>();
  TRY_ASSIGN(store.blobs_, enter_own(store.top_.get(), "blobs"));
  TRY_ASSIGN(store.copies_, enter_own(store.top_.get(), "copies"));
  store.folders_ = std::make_unique<BlobFolders>();
  TRY_ASSIGN(const std::vector<std::string> names, names_in(store.blobs_.get()));
  for (size_t first = 0; first < store.folders_->there.size(); ++first)
    store.folders_->there[first] = std::find(names.begin(), names.end(), hex_of(std::string(1, static_cast<char>(first)))) != names.end();
  return std::optional<Store>(std::move(store));
}

base::Result<std::optional<Store>> Store::open(const std::string& root) { return open_in(root, true); }

std::optional<Store> Store::open_existing(const std::string& root) {
  if (root.empty() || !os::is_folder(root)) return std::nullopt;
  base::Result<std::optional<Store>> store = open_in(root, false);
  return store.ok() ? std::move(*store) : std::nullopt;
}

base::Result<int> Store::blob_folder(std::string_view digest) const {
  const auto first = static_cast<unsigned char>(digest.front());
  os::Fd& folder = folders_->open[first];
  if (!folder.valid()) {
    base::Result<os::Fd> entered = enter_own(blobs_.get(), hex_of(digest.substr(0, 1)));
    if (!entered.ok()) return std::move(entered).error();
    folder = std::move(*entered);
    folders_->there[first] = true;
  }
  return folder.get();
}

bool Store::has_blob(std::string_view digest, uint64_t size) const {
  if (!folders_->there[static_cast<unsigned char>(digest.front())]) return false;
  const std::string hex = hex_of(digest);
  struct stat s{};
  return ::fstatat(blobs_.get(), (hex.substr(0, 2) + "/" + hex).c_str(), &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(s.st_mode) &&
         static_cast<uint64_t>(s.st_size) == size;
}

std::optional<Listing> read_manifest(int copy) {
  base::Result<std::optional<os::Fd>> file = os::open_regular_if_present(copy, "manifest");
  if (!file.ok() || !*file) return std::nullopt;
  base::Result<std::string> bytes = os::read_rest(**file, "manifest", kMostManifestBytes);
  if (!bytes.ok()) return std::nullopt;
  base::Result<Listing> manifest = Listing::read(std::move(*bytes));
  return manifest.ok() ? std::optional(std::move(*manifest)) : std::nullopt;
}

std::optional<std::vector<Seen>> read_seen(int copy, size_t entries) {
  base::Result<std::optional<os::Fd>> file = os::open_regular_if_present(copy, "seen");
  if (!file.ok() || !*file) return std::nullopt;
  base::Result<std::string> bytes = os::read_rest(**file, "seen", kMostManifestBytes);
  if (!bytes.ok()) return std::nullopt;
  wire::Decoder in(*bytes);
  if (in.u32() != kSeenVersion || in.count(16) != entries) return std::nullopt;
  std::vector<Seen> seen(entries);
  for (Seen& one : seen) {
    one.inode = in.u64();
    one.ctime_ns = in.i64();
  }
  return in.done() ? std::optional(std::move(seen)) : std::nullopt;
}

base::Status write_lists(int copy, const Listing& manifest, const std::vector<Seen>& seen) {
  TRY(os::write_file_atomic_at(copy, "manifest", manifest.bytes(), 0600, os::Durable::kNo));
  std::string bytes;
  bytes.reserve((seen.size() + 1) * sizeof(Seen));
  wire::Encoder out(bytes);
  out.u32(kSeenVersion);
  out.u32(static_cast<uint32_t>(seen.size()));
  for (const Seen& one : seen) {
    out.u64(one.inode);
    out.i64(one.ctime_ns);
  }
  return os::write_file_atomic_at(copy, "seen", bytes, 0600, os::Durable::kNo);
}

base::Result<Seen> look_at(int folder, const std::string& name) {
  struct stat s{};
  if (::fstatat(folder, name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) return base::system_error("stat", name);
  return Seen{s.st_ino, int64_t{s.st_ctim.tv_sec} * 1'000'000'000 + s.st_ctim.tv_nsec};
}

std::string store_root() {
  const std::string home = os::environment_value("HOME");
  const std::string cache = os::environment_value("XDG_CACHE_HOME", home.empty() ? "" : home + "/.cache");
  return cache.starts_with('/') ? cache + "/phalanx/sync" : "";
}

namespace {

void stamp(const std::string& directory, int64_t ahead_s) {
  const std::string copies = store_root() + "/copies/";
  if (copies.front() != '/' || !directory.starts_with(copies)) return;
  const std::string name = directory.substr(copies.size(), directory.find('/', copies.size()) - copies.size());
  if (!is_copy_name(name)) return;
  os::Fd folder(::open((copies + name).c_str(), kFolder));
  const timespec then{static_cast<time_t>(os::wall_now_ns() / 1'000'000'000 + ahead_s), 0};
  const timespec times[2] = {then, then};
  if (folder.valid()) (void)::futimens(folder.get(), ahead_s == 0 ? nullptr : times);
}

}  // namespace

void stamp_copy(const std::string& directory) { stamp(directory, 0); }
void stamp_copy_ahead(const std::string& directory) { stamp(directory, kWaitingStamp_s); }

}  // namespace phalanx::sync
