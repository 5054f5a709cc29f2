#include "machine/old_builds.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/counted.h"
#include "os/clock.h"
#include "os/fd.h"

namespace phalanx::machine {
namespace {

constexpr std::string_view kLeaving = ".removed-";  // a build on its way out: no launch finds it, the next call finishes it
constexpr size_t kLeastIdBytes = 16, kMostIdBytes = 64;
constexpr int64_t kBillion = 1'000'000'000;
constexpr int64_t kLately_s = 3600;

bool is_build(std::string_view name) {
  return name.size() >= kLeastIdBytes && name.size() <= kMostIdBytes &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// What deployment (hosts/connect/deploy.cc) and the launcher (hosts/connect/payload.cc) put into the folder of a build.
bool is_file_of_build(std::string_view name) {
  return name == "phalanx" || name == "packed" || name.starts_with(".new.") || name.starts_with("packed.tmp.");
}

bool is_private_to_us(const struct stat& s) { return s.st_uid == ::geteuid() && (s.st_mode & 022) == 0; }

os::Fd enter(int folder, const std::string& name) {
  return os::Fd(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Nothing: it could not be read to its end.
std::optional<std::vector<std::string>> names_in(int folder) {
  os::Fd copy = enter(folder, ".");
  DIR* stream = copy.valid() ? ::fdopendir(copy.get()) : nullptr;
  if (!stream) return std::nullopt;
  (void)copy.release();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream)) names.emplace_back(entry->d_name);
  const bool whole = errno == 0;
  ::closedir(stream);
  if (!whole) return std::nullopt;
  std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
  return names;
}

struct Build {
  std::string name;  // of its folder
  os::Fd folder;
  struct stat status{};
};

std::optional<Build> open_build(int cache, const std::string& name) {
  Build build{name, enter(cache, name)};
  if (!build.folder.valid() || ::fstat(build.folder.get(), &build.status) != 0 || !is_private_to_us(build.status)) return std::nullopt;
  std::optional<std::vector<std::string>> names = names_in(build.folder.get());
  if (!names) return std::nullopt;
  for (const std::string& file : *names) {
    struct stat s{};
    if (!is_file_of_build(file) || ::fstatat(build.folder.get(), file.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
    if (!S_ISREG(s.st_mode) || s.st_uid != build.status.st_uid || s.st_dev != build.status.st_dev) return std::nullopt;
  }
  return build;
}

// Empty: all of it is gone.
std::string empty_out(const os::Fd& cache, const Build& build, const std::string& leaving) {
  struct stat now{};
  if (::fstatat(cache.get(), leaving.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0 || now.st_ino != build.status.st_ino ||
      now.st_dev != build.status.st_dev)
    return "another folder came in its place";
  std::optional<std::vector<std::string>> names = names_in(build.folder.get());
  for (const std::string& file : names.value_or(std::vector<std::string>{}))
    if (is_file_of_build(file)) ::unlinkat(build.folder.get(), file.c_str(), 0);
  return ::unlinkat(cache.get(), leaving.c_str(), AT_REMOVEDIR) == 0 ? "" : base::system_error("rmdir", leaving).message;
}

class Tending {
 public:
  Tending(os::Fd cache, int64_t wall_ns, const BuildRemoved& removed) : cache_(std::move(cache)), wall_ns_(wall_ns), removed_(removed) {}

  void work(const std::string& current, const BuildKeeping& keeping) {
    os::Fd own = enter(cache_.get(), current);
    const timespec now[2] = {{static_cast<time_t>(wall_ns_ / kBillion), 0}, {static_cast<time_t>(wall_ns_ / kBillion), 0}};
    if (own.valid() && !keeping.list_only) ::futimens(own.get(), now);
    std::optional<std::vector<std::string>> names = names_in(cache_.get());
    if (!names) return;
    std::vector<Build> others;
    for (const std::string& name : *names) {
      const bool leaving = name.starts_with(kLeaving);
      if (name == current || !is_build(leaving ? std::string_view(name).substr(kLeaving.size()) : std::string_view(name))) continue;
      std::optional<Build> build = open_build(cache_.get(), name);
      if (build && leaving && keeping.list_only) removed_(name.substr(kLeaving.size()), "");
      else if (build && leaving) clear(*build, name.substr(kLeaving.size()), "its removal was interrupted before");
      else if (build) others.push_back(std::move(*build));
    }
    std::sort(others.begin(), others.end(), [](const Build& a, const Build& b) { return a.status.st_mtime > b.status.st_mtime; });
    if (others.empty()) return;
    // Not from now alone: a clock that is wrong today makes nothing old.
    const int64_t wall_s = wall_ns_ / kBillion;
    const int64_t reference = keeping.from_now ? wall_s : std::min<int64_t>(others.front().status.st_mtime, wall_s);
    const std::chrono::days patience = others.size() + 1 > keeping.builds ? keeping.unused_crowded : keeping.unused;
    for (size_t i = keeping.whatever_age; i < others.size(); ++i) {
      const std::chrono::seconds unused(reference - others[i].status.st_mtime);
      if (unused <= patience) continue;
      if (keeping.list_only) removed_(others[i].name, "");
      else remove(others[i], unused);
    }
  }

 private:
  void remove(const Build& build, std::chrono::seconds unused) {
    const std::string leaving = std::string(kLeaving) + build.name;
    if (::renameat2(cache_.get(), build.name.c_str(), cache_.get(), leaving.c_str(), RENAME_NOREPLACE) != 0 &&
        (errno != EINVAL || ::renameat(cache_.get(), build.name.c_str(), cache_.get(), leaving.c_str()) != 0))
      return;  // another host was first, or it cannot be: it stays
    clear(build, build.name, base::counted("not used for {} days", unused / std::chrono::hours(24)));
  }

  void clear(const Build& build, const std::string& id, const std::string& why) {
    write_down(id, why);
    removed_(id, "");
    const std::string problem = empty_out(cache_, build, std::string(kLeaving) + id);
    if (!problem.empty()) removed_(id, problem);
  }

  void write_down(const std::string& id, const std::string& why) {
    os::Fd log(::openat(cache_.get(), "removed.log", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    const std::string line = fmt::format("{} build {}: {}\n", os::iso_time(wall_ns_), id, why);
    if (log.valid() && ::write(log.get(), line.data(), line.size()) < 0) {}
  }

  os::Fd cache_;
  int64_t wall_ns_;
  const BuildRemoved& removed_;
};

}  // namespace

void tend_builds(const std::string& cache, const std::string& current, const BuildKeeping& keeping, int64_t wall_ns,
                 const BuildRemoved& removed) {
  os::Fd folder(::open(cache.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat s{};
  if (!is_build(current) || !folder.valid() || ::fstat(folder.get(), &s) != 0 || !is_private_to_us(s)) return;
  Tending(std::move(folder), wall_ns, removed).work(current, keeping);
}

// tend_builds() stamps the folder with whole seconds. A file that was just written to the folder leaves a fraction, so a new build is
// not taken for one that was tended. Where a file system has no fractions, it is, for an hour.
bool tended_lately(const std::string& folder, int64_t wall_ns) {
  struct stat s{};
  if (::stat(folder.c_str(), &s) != 0 || s.st_mtim.tv_nsec != 0) return false;
  const int64_t age_s = wall_ns / kBillion - s.st_mtim.tv_sec;
  return age_s >= 0 && age_s < kLately_s;
}

}  // namespace phalanx::machine
