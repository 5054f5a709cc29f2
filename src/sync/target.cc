#include "sync/target.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "os/files.h"
#include "sync/scan.h"
#include "wire/bounds.h"
#include "wire/codec.h"

namespace phalanx::sync {
namespace {

using base::ErrorKind;

constexpr uint32_t kRecordVersion = 1;
constexpr size_t kMostRecordBytes = kMostManifestBytes + 16 * (kMostEntries + 1);

base::Error refused(const std::string& path, const std::string& why) {
  return base::fail(ErrorKind::kUnfit, fmt::format("{} cannot be pushed to", path))
      .because(why)
      .with_hint(std::string(wire::kAdviceOnTarget));
}

// Who may write to a folder above could put another target, or a link, in the place of this one.
base::Status check_above(const std::string& path) {
  for (size_t slash = 0; slash != std::string::npos && slash + 1 < path.size(); slash = path.find('/', slash + 1)) {
    const std::string above = slash == 0 ? "/" : path.substr(0, slash);
    struct stat s{};
    if (::lstat(above.c_str(), &s) != 0) return errno == ENOENT ? base::ok() : base::Status(base::system_error("stat", above));
    const bool link_of_another = S_ISLNK(s.st_mode) && s.st_uid != ::geteuid() && s.st_uid != 0;
    if (link_of_another || !os::only_ours_to_change(above))
      return refused(path, fmt::format("{} belongs to another user, or others may write to it", above));
  }
  return base::ok();
}

}  // namespace

base::Result<Target> open_target(const std::string& path, bool among_others) {
  for (std::string_view name : base::split(path, '/'))
    if (name == ".." || name == "." || !path.starts_with('/') || path.size() > kMostPathBytes || path == "/")
      return base::fail(ErrorKind::kInternal, "a malformed target");
  TRY(check_above(path));
  Target target;
  struct stat s{};
  const bool there = ::lstat(path.c_str(), &s) == 0;
  target.made = !there && errno == ENOENT;
  // In /tmp and its like anybody may have put one here, and it would lead into any directory of ours.
  if (there && S_ISLNK(s.st_mode) && s.st_uid != ::geteuid() && s.st_uid != 0) return refused(path, "it is a link of another user");
  if (target.made) {
    base::Status made = os::make_folders(path.substr(0, std::max<size_t>(path.rfind('/'), 1)), 0755);
    if (made.ok() && ::mkdir(path.c_str(), 0700) != 0) {
      target.made = false;  // by another session, if it is there now
      if (errno != EEXIST) made = base::system_error("mkdir", path);
    }
    if (!made.ok()) {
      made.error().kind = ErrorKind::kUnfit;
      return std::move(made).error();
    }
  }
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), std::free);
  if (!real) return refused(path, "it does not lead to a directory");
  target.path = real.get();
  TRY(check_above(target.path));
  target.folder = os::Fd(::open(target.path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!target.folder.valid() || ::fstat(target.folder.get(), &s) != 0) return refused(path, "it is not a directory, or cannot be opened");
  if (s.st_uid != ::geteuid()) return refused(path, "it belongs to another user");
  if ((s.st_mode & 022) != 0) return refused(path, "others may write to it");
  // In this order: another session that is over now has written its record before its folder went.
  if (among_others || ::fstatat(target.folder.get(), kIncoming, &s, AT_SYMLINK_NOFOLLOW) == 0 || read_record(target.folder.get()))
    return target;
  TRY_ASSIGN(const std::vector<std::string> names, names_in(target.folder.get()));
  if (names.empty() || std::find(names.begin(), names.end(), kIncoming) != names.end()) return target;
  return base::fail(ErrorKind::kUnfit, fmt::format("{} holds what no push has put there, such as {}", path, names.front()))
      .with_hint(std::string(wire::kAdviceOnOthers));
}

bool is_in_its_place(const Target& target) {
  struct stat there{}, here{};
  return ::lstat(target.path.c_str(), &there) == 0 && ::fstat(target.folder.get(), &here) == 0 && there.st_dev == here.st_dev &&
         there.st_ino == here.st_ino;
}

std::optional<Record> read_record(int target) {
  base::Result<std::optional<os::Fd>> file = os::open_regular_if_present(target, kRecord);
  if (!file.ok() || !*file) return std::nullopt;
  const base::Result<std::string> bytes = os::read_rest(**file, kRecord, kMostRecordBytes);
  if (!bytes.ok()) return std::nullopt;
  wire::Decoder in(*bytes);
  if (in.u32() != kRecordVersion) return std::nullopt;
  base::Result<Listing> manifest = Listing::read(in.str());
  if (!manifest.ok() || !manifest->with_modes() || in.count(16) != manifest->entries().size()) return std::nullopt;
  Record record{std::move(*manifest), {}};
  record.seen.resize(record.manifest.entries().size());
  for (Seen& one : record.seen) {
    one.inode = in.u64();
    one.ctime_ns = in.i64();
  }
  return in.done() ? std::optional(std::move(record)) : std::nullopt;
}

base::Status write_record(int target, const std::vector<EntryView>& entries, const std::vector<Seen>& seen) {
  std::string bytes;
  wire::Encoder out(bytes);
  out.u32(kRecordVersion);
  out.str(encode(entries, true));
  out.u32(static_cast<uint32_t>(seen.size()));
  for (const Seen& one : seen) {
    out.u64(one.inode);
    out.i64(one.ctime_ns);
  }
  return os::write_file_atomic_at(target, kRecord, bytes, 0600, os::Durable::kNo);
}

bool as_pushed(const EntryView& entry, const Seen& seen, const struct stat& s) {
  constexpr int64_t kNsOfASecond = 1'000'000'000;
  if (S_ISLNK(s.st_mode) != (entry.kind == Kind::kLink) || (!S_ISLNK(s.st_mode) && !S_ISREG(s.st_mode))) return false;
  if (s.st_ino != seen.inode || (entry.is_file() && static_cast<uint64_t>(s.st_size) != entry.size)) return false;
  if (seen.ctime_ns != 0) return seen.ctime_ns == int64_t{s.st_ctim.tv_sec} * kNsOfASecond + s.st_ctim.tv_nsec;
  return entry.is_file() && int64_t{s.st_mtim.tv_sec} * kNsOfASecond + s.st_mtim.tv_nsec == entry.mtime_ns;
}

}  // namespace phalanx::sync
