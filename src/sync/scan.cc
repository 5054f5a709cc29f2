#include "sync/scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "os/fd.h"
#include "os/files.h"
#include "sync/hashes.h"
#include "sync/ignore.h"
#include "sync/store.h"
#include "sync/threads.h"

namespace phalanx::sync {
namespace {

using base::ErrorKind;

constexpr size_t kMostIgnoreBytes = 1 << 20;
constexpr size_t kMostWalked = kMostEntries;
constexpr size_t kShownFolders = 3;
constexpr const char* kReadableOrIgnored = "make it readable, or add it to .gitignore";
constexpr const char* kParts = "push its parts one by one";
constexpr const char* kReadable = "make it readable, or move it to another directory";

int64_t ns_of(const timespec& t) { return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; }

// On a few threads: most of the time goes by asking for each file what it is. A thread that meets a folder leaves it to one that waits, or
// goes into it itself.
class Walk {
 public:
  Walk(Scan& scan, const std::string& root, const os::Fd& top, Take take, const Leave& leave)
      : scan_(scan), root_(root), top_(top), everything_(take == Take::kEverything), leave_(leave) {}

  // The error of the path that comes first, of those that were met.
  base::Status all(IgnoreRules rules) {
    waiting_folders_.push_back({"", std::move(rules)});
    on_threads(most_threads(), [this] { work(); });
    return failed_ ? base::Status(std::move(*failed_)) : base::ok();
  }
  std::vector<Stamp>& stamps() { return stamps_; }

 private:
  struct Folder {
    std::string path;
    IgnoreRules rules;
  };
  struct Found {  // by one thread
    std::vector<Entry> entries;
    std::vector<Stamp> stamps;
    size_t links_outside = 0, special = 0;
    std::string left_out;
    std::string at;  // what is looked at
  };

  void work() {
    Found found;
    std::unique_lock lock(mutex_);
    while (true) {
      ++idle_;
      changed_.wait(lock, [this] { return failed_ || !waiting_folders_.empty() || busy_ == 0; });
      --idle_;
      if (failed_ || waiting_folders_.empty()) break;
      Folder next = std::move(waiting_folders_.back());
      waiting_folders_.pop_back();
      ++busy_;
      lock.unlock();
      found.at = next.path;
      base::Result<os::Fd> here = enter_below(top_.get(), next.path);
      base::Status walked =
          here.ok() ? folder(*here, next.path, std::move(next.rules), found) : base::Status(unreadable("open", next.path));
      lock.lock();
      --busy_;
      if (!walked.ok() && (!failed_ || found.at < failed_at_)) {
        failed_ = std::move(walked).error();
        failed_at_ = found.at;
      }
      changed_.notify_all();
    }
    std::vector<Entry>& entries = scan_.manifest.entries;
    entries.insert(entries.end(), std::make_move_iterator(found.entries.begin()), std::make_move_iterator(found.entries.end()));
    stamps_.insert(stamps_.end(), found.stamps.begin(), found.stamps.end());
    scan_.links_outside += found.links_outside;
    scan_.special += found.special;
    if (scan_.left_out.empty() || (!found.left_out.empty() && found.left_out < scan_.left_out)) scan_.left_out = found.left_out;
  }

  bool others_take(const std::string& path, const IgnoreRules& rules) {
    if (idle_ == 0) return false;
    std::lock_guard lock(mutex_);
    if (idle_ <= waiting_folders_.size()) return false;
    waiting_folders_.push_back({path, rules});
    changed_.notify_one();
    return true;
  }

  base::Status folder(const os::Fd& here, const std::string& path, IgnoreRules rules, Found& found) {
    if (!everything_) TRY(add_rules(here, path, rules));
    const int copy = ::openat(here.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* stream = copy >= 0 ? ::fdopendir(copy) : nullptr;
    if (!stream) return unreadable("read", path);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(stream)) names.emplace_back(entry->d_name);
    const int error = errno;
    ::closedir(stream);
    if (error != 0) {
      errno = error;
      return unreadable("read", path);
    }
    for (const std::string& one : names)
      if (one != "." && one != ".." && !stays(one)) TRY(take(here, one, path.empty() ? one : path + "/" + one, rules, found));
    return base::ok();
  }

  // A directory may hold targets of other pushes, at any depth.
  bool stays(const std::string& name) const { return is_of_a_push(name) || (!everything_ && name == ".git"); }

  // What the file leaves out is not known before it has been read.
  base::Status add_rules(const os::Fd& here, const std::string& path, IgnoreRules& rules) const {
    TRY_ASSIGN(const std::optional<os::Fd> file, os::open_regular_if_present(here.get(), ".gitignore"));
    if (!file) return base::ok();
    TRY_ASSIGN(const std::string text, os::read_rest(*file, path + "/.gitignore", kMostIgnoreBytes));
    rules.add(path, text);
    return base::ok();
  }

  base::Error unreadable(const char* doing, const std::string& path) const {
    base::Error error = base::system_error(doing, path.empty() ? root_ : root_ + "/" + path);
    error.kind = ErrorKind::kUsage;
    error.hint = everything_ ? kReadable : kReadableOrIgnored;
    return error;
  }

  base::Status take(const os::Fd& parent, const std::string& name, const std::string& path, const IgnoreRules& rules, Found& found) {
    found.at = path;
    struct stat s{};
    if (::fstatat(parent.get(), name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? base::ok() : unreadable("stat", path);
    const bool is_folder = S_ISDIR(s.st_mode);
    if ((!everything_ && rules.leaves_out(path, is_folder)) || (leave_ && leave_(path))) return base::ok();
    Entry entry;
    entry.path = path;
    if (path.size() > kMostPathBytes || std::count(path.begin(), path.end(), '/') >= static_cast<long>(kMostDepth))
      return base::fail(ErrorKind::kUsage, fmt::format("the path is too long to be copied: {}", path))
          .with_hint(everything_ ? "shorten it" : "add it to .gitignore");
    if (everything_ && !S_ISLNK(s.st_mode)) entry.mode = s.st_mode & kModes;
    if (is_folder) {
      entry.kind = Kind::kFolder;
      if (everything_) entry.mtime_ns = ns_of(s.st_mtim);
    } else if (S_ISREG(s.st_mode)) {
      entry.kind = (s.st_mode & S_IXUSR) != 0 ? Kind::kProgram : Kind::kFile;
      entry.size = static_cast<uint64_t>(s.st_size);
      entry.mtime_ns = ns_of(s.st_mtim);
    } else if (S_ISLNK(s.st_mode)) {
      entry.kind = Kind::kLink;
      std::string target(kMostPathBytes + 1, '\0');
      const ssize_t n = ::readlinkat(parent.get(), name.c_str(), target.data(), target.size());
      target.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
      const bool outside = !link_stays_inside(path, target);
      if (outside && !everything_) return leave_out(found, found.links_outside);
      if (outside) ++found.links_outside;
      entry.content = std::move(target);
    } else {
      return leave_out(found, found.special);
    }
    if (++count_ > kMostWalked)
      return base::fail(ErrorKind::kUsage, base::counted("{} has more than {} files", root_, kMostWalked))
          .with_hint(everything_ ? kParts : "add what the run does not need to .gitignore, or name a smaller directory with --sync=DIR");
    found.entries.push_back(std::move(entry));
    found.stamps.push_back({static_cast<uint64_t>(s.st_size), s.st_ino, ns_of(s.st_mtim), ns_of(s.st_ctim)});
    if (!is_folder || others_take(path, rules)) return base::ok();
    const os::Fd here(::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    return here.valid() ? folder(here, path, rules, found) : base::Status(unreadable("open", path));
  }

  base::Status leave_out(Found& found, size_t& counter) {
    ++counter;
    if (found.left_out.empty() || found.at < found.left_out) found.left_out = found.at;
    return base::ok();
  }

  Scan& scan_;
  const std::string& root_;
  const os::Fd& top_;
  bool everything_;
  const Leave& leave_;
  std::vector<Stamp> stamps_;
  std::atomic<size_t> count_ = 0, idle_ = 0;
  std::mutex mutex_;  // of what follows, and of what the threads have found at their end
  std::condition_variable changed_;
  std::vector<Folder> waiting_folders_;
  size_t busy_ = 0;
  std::optional<base::Error> failed_;
  std::string failed_at_;
};

// git reads the files of all folders from the one with .git down.
base::Result<IgnoreRules> rules_above(const std::string& root) {
  std::vector<std::string> folders;
  bool repository = os::exists(root + "/.git");
  for (std::string at = root; !repository && at.size() > 1;) {
    at = at.substr(0, std::max<size_t>(at.rfind('/'), 1));
    folders.push_back(at);
    repository = os::exists((at == "/" ? "" : at) + "/.git");
    if (at == "/") break;
  }
  IgnoreRules rules;
  if (!repository) return rules;
  for (auto at = folders.rbegin(); at != folders.rend(); ++at) {
    const std::string path = *at + "/.gitignore";
    TRY_ASSIGN(const std::optional<os::Fd> file, os::open_regular_if_present(path));
    if (!file) continue;
    TRY_ASSIGN(const std::string text, os::read_rest(*file, path, kMostIgnoreBytes));
    rules.add("", text, root.substr(*at == "/" ? 1 : at->size() + 1));
  }
  return rules;
}

base::Error too_much(const std::string& root, const Manifest& manifest, const ScanLimits& limits) {
  struct Part {
    uint64_t bytes = 0;
    size_t files = 0;
  };
  std::map<std::string, Part> parts;
  for (const Entry& entry : manifest.entries) {
    if (entry.kind == Kind::kFolder) continue;
    const size_t slash = entry.path.find('/');
    Part& part = parts[slash == std::string::npos ? "." : entry.path.substr(0, slash)];
    part.bytes += entry.size;
    ++part.files;
  }
  if (manifest.with_modes)
    return base::fail(ErrorKind::kUsage,
                      base::counted("{} has {} in {} files; at most {} in {} files are pushed at once", root,
                                    base::format_bytes(manifest.bytes()), manifest.files(), base::format_bytes(limits.bytes), limits.files))
        .with_hint(kParts);
  const bool by_bytes = manifest.bytes() > limits.bytes;
  std::vector<std::pair<std::string, Part>> sorted(parts.begin(), parts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) {
    return by_bytes ? a.second.bytes > b.second.bytes : a.second.files > b.second.files;
  });
  std::string largest;
  for (size_t i = 0; i < std::min(kShownFolders, sorted.size()); ++i)
    largest += (i == 0 ? "" : ", ") +
               base::counted("{}: {} in {} files", sorted[i].first, base::format_bytes(sorted[i].second.bytes), sorted[i].second.files);
  return base::fail(ErrorKind::kUsage, base::counted("--sync would copy {} in {} files from {}; at most {} in {} files are copied",
                                                     base::format_bytes(manifest.bytes()), manifest.files(), root,
                                                     base::format_bytes(limits.bytes), limits.files))
      .because(fmt::format("the largest directories are {}", largest))
      .with_hint("add what the run does not need to .gitignore, or raise the limit with --sync-max SIZE");
}

}  // namespace

bool is_of_a_push(std::string_view name) {
  return name == kRecord || name == kIncoming || name.starts_with(kLeaving) || name.starts_with(kSourceMark);
}

base::Result<Scan> scan(const std::string& root, const ScanLimits& limits, const std::string& index, Take take, const Hashed& hashed,
                        const Leave& leave) {
  Scan found;
  found.manifest.with_modes = take == Take::kEverything;
  os::Fd top(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!top.valid()) {
    base::Error error = base::system_error("open", root);
    error.kind = ErrorKind::kUsage;
    return error;
  }
  TRY_ASSIGN(const struct stat folder, os::stat_of(top, root));
  found.mode = folder.st_mode & kModes;
  IgnoreRules above;
  if (take == Take::kCode) { TRY_ASSIGN(above, rules_above(root)); }
  Walk walk(found, root, top, take, leave);
  TRY(walk.all(std::move(above)));
  if (found.manifest.bytes() > limits.bytes || found.manifest.files() > limits.files) return too_much(root, found.manifest, limits);
  std::vector<size_t> order(found.manifest.entries.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<Entry>& entries = found.manifest.entries;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return entries[a].path < entries[b].path; });
  std::vector<Entry> sorted;
  std::vector<Stamp> stamps;
  sorted.reserve(order.size());
  stamps.reserve(order.size());
  for (size_t i : order) {
    sorted.push_back(std::move(entries[i]));
    stamps.push_back(walk.stamps()[i]);
  }
  entries = std::move(sorted);
  base::Status done = hash_all(root, stamps, index, limits.unsettled_s, hashed, found);
  if (done.ok()) return found;
  if (done.error().hint.empty()) done.error().hint = found.manifest.with_modes ? kReadable : kReadableOrIgnored;
  return std::move(done).error();
}

ContentReader::ContentReader(std::string root, const Aside* aside) : inside_(std::make_unique<Inside>(std::move(root))), aside_(aside) {}
ContentReader::~ContentReader() = default;

void ContentReader::begin(const Entry& entry, uint64_t from) {
  file_.reset();
  at_ = from;
  left_ = entry.size - from;
  const auto aside = aside_ ? aside_->at.find(entry.content) : std::unordered_map<std::string, uint64_t>::const_iterator{};
  if (aside_ && aside != aside_->at.end()) {
    from_ = aside_->file.get();
    at_ += aside->second;
    return;
  }
  base::Result<std::optional<os::Fd>> file = inside_->open(entry.path);
  if (file.ok() && *file) file_ = std::move(**file);
  from_ = file_.get();
}

std::string_view ContentReader::next(std::span<char> room) {
  size_t size = std::min<uint64_t>(left_, room.size());
  ssize_t got = -1;
  if (from_ >= 0) do
      got = ::pread(from_, room.data(), size, static_cast<off_t>(at_));
    while (got < 0 && errno == EINTR);
  if (got > 0) size = static_cast<size_t>(got);
  else std::fill_n(room.begin(), size, '\0');
  at_ += size;
  left_ -= size;
  return {room.data(), size};
}

}  // namespace phalanx::sync
