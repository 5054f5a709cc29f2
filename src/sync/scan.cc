#include "sync/scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "os/fd.h"
#include "os/files.h"
#include "sync/hashes.h"
#include "sync/ignore.h"

namespace phalanx::sync {
namespace {

using base::ErrorKind;

constexpr size_t kMostIgnoreBytes = 1 << 20;
constexpr size_t kMostWalked = kMostEntries;
constexpr size_t kPiece = 256 << 10;
constexpr size_t kShownFolders = 3;
constexpr const char* kReadableOrIgnored = "make it readable, or add it to .gitignore";
constexpr const char* kParts = "push its parts one by one";
constexpr const char* kReadable = "make it readable, or move it to another directory";

int64_t ns_of(const timespec& t) { return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; }

class Walk {
 public:
  Walk(Scan& scan, const std::string& root, Take take, const Leave& leave)
      : scan_(scan), root_(root), everything_(take == Take::kEverything), leave_(leave) {}

  base::Status folder(const os::Fd& parent, const std::string& name, const std::string& path, IgnoreRules rules) {
    os::Fd here(::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!here.valid()) return unreadable("open", path);
    if (!everything_) TRY(add_rules(here, path, rules));
    const int copy = ::dup(here.get());
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
      if (one != "." && one != ".." && !stays(one, path)) TRY(take(here, one, path.empty() ? one : path + "/" + one, rules));
    return base::ok();
  }
  std::vector<Stamp>& stamps() { return stamps_; }

 private:
  bool stays(const std::string& name, const std::string& folder) const {
    return everything_ ? folder.empty() && (name == kRecord || name == kIncoming) : name == ".git";
  }

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

  base::Status take(const os::Fd& parent, const std::string& name, const std::string& path, const IgnoreRules& rules) {
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
      if (outside && !everything_) return leave_out(scan_.links_outside, path);
      if (outside) ++scan_.links_outside;
      entry.content = std::move(target);
    } else {
      return leave_out(scan_.special, path);
    }
    if (scan_.manifest.entries.size() >= kMostWalked)
      return base::fail(ErrorKind::kUsage, base::counted("{} has more than {} files", root_, kMostWalked))
          .with_hint(everything_ ? kParts : "add what the run does not need to .gitignore, or name a smaller directory with --sync=DIR");
    scan_.manifest.entries.push_back(std::move(entry));
    stamps_.push_back({static_cast<uint64_t>(s.st_size), s.st_ino, ns_of(s.st_mtim), ns_of(s.st_ctim)});
    return is_folder ? folder(parent, name, path, rules) : base::ok();
  }

  base::Status leave_out(size_t& counter, const std::string& path) {
    ++counter;
    if (scan_.left_out.empty()) scan_.left_out = path;
    return base::ok();
  }

  Scan& scan_;
  const std::string& root_;
  bool everything_;
  const Leave& leave_;
  std::vector<Stamp> stamps_;
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

base::Result<Scan> scan(const std::string& root, const ScanLimits& limits, const std::string& index, Take take, const Hashed& hashed,
                        const Leave& leave) {
  Scan found;
  found.manifest.with_modes = take == Take::kEverything;
  Walk walk(found, root, take, leave);
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
  TRY(walk.folder(top, ".", "", std::move(above)));
  if (found.manifest.bytes() > limits.bytes || found.manifest.files() > limits.files) return too_much(root, found.manifest, limits);
  std::vector<size_t> order(found.manifest.entries.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<Entry>& entries = found.manifest.entries;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return entries[a].path < entries[b].path; });
  std::vector<Entry> sorted;
  std::vector<Stamp> stamps;
  for (size_t i : order) {
    sorted.push_back(std::move(entries[i]));
    stamps.push_back(walk.stamps()[i]);
  }
  entries = std::move(sorted);
  base::Status done = hash_all(root, stamps, index, hashed, found);
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

std::string_view ContentReader::next() {
  buffer_.resize(std::min<uint64_t>(left_, kPiece));
  ssize_t size = -1;
  if (from_ >= 0) do
      size = ::pread(from_, buffer_.data(), buffer_.size(), static_cast<off_t>(at_));
    while (size < 0 && errno == EINTR);
  if (size > 0) buffer_.resize(static_cast<size_t>(size));
  else std::fill(buffer_.begin(), buffer_.end(), '\0');
  at_ += buffer_.size();
  left_ -= buffer_.size();
  return buffer_;
}

}  // namespace phalanx::sync
