#include "envmove/archive/unpack.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "envmove/archive/pack.h"
#include "envmove/votes.h"
#include "os/files.h"
#include "sync/store.h"

namespace phalanx::envmove {
namespace {

using base::ErrorKind;

constexpr const char* kPart = ".phalanx-unpack.";  // and the name of the place
constexpr size_t kShownProblems = 5;
constexpr int kMostDepth = 16;

// The folder beside the place, locked by us and empty.
class Part {
 public:
  static base::Result<Part> make(const std::string& place) {
    Part part;
    const size_t slash = place.rfind('/');
    const std::string above = slash == 0 ? "/" : place.substr(0, slash);
    part.name_ = kPart + place.substr(slash + 1);
    part.path_ = (slash == 0 ? "" : above) + "/" + part.name_;
    base::Status made = os::make_folders(above, 0755);
    if (made.ok()) {
      part.above_ = os::Fd(::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!part.above_.valid()) made = base::system_error("open", above);
    }
    if (!made.ok()) {
      made.error().kind = ErrorKind::kUnfit;
      return std::move(made).error();
    }
    TRY_ASSIGN(part.folder_, sync::enter_own(part.above_.get(), part.name_));
    // Between the opening and the lock whoever held it may have moved the folder to the place: then it is no longer ours to empty.
    if (::flock(part.folder_.get(), LOCK_EX | LOCK_NB) != 0 || !sync::is_still_at(part.above_.get(), part.name_, part.folder_))
      return base::fail(ErrorKind::kUnfit, fmt::format("another phalanx is unpacking to {}", place));
    part.locked_ = true;
    TRY_ASSIGN(const std::vector<std::string> left, sync::names_in(part.folder_.get()));
    for (const std::string& one : left)
      if (!sync::remove_tree(part.folder_.get(), one) && ::unlinkat(part.folder_.get(), one.c_str(), 0) != 0)
        return base::system_error("remove", part.path_ + "/" + one);
    return part;
  }
  Part(Part&&) = default;
  Part& operator=(Part&&) = default;
  ~Part() {
    if (locked_ && folder_.valid() && sync::is_still_at(above_.get(), name_, folder_)) (void)sync::remove_tree(above_.get(), name_);
  }

  const os::Fd& folder() const { return folder_; }
  const std::string& path() const { return path_; }

  // The environment in it: all of it, or below folders that hold nothing but one another ("anaconda3/envs/llm").
  base::Result<std::string> root() const {
    std::string path = path_;
    for (int depth = 0; depth < kMostDepth; ++depth) {
      if (holds_environment(path)) return path;
      const os::Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!folder.valid()) break;
      TRY_ASSIGN(const std::vector<std::string> names, sync::names_in(folder.get()));
      if (names.size() != 1) break;
      path += "/" + names[0];
    }
    return base::fail(ErrorKind::kConfig, "the archive holds no environment of Python")
        .because("neither at its top nor below folders that hold nothing else is there conda-meta/ or pyvenv.cfg");
  }

 private:
  Part() = default;
  static bool holds_environment(const std::string& folder) {
    struct stat s{};
    return ::lstat(folder.c_str(), &s) == 0 && S_ISDIR(s.st_mode) &&
           (os::is_folder(folder + "/conda-meta") || os::exists(folder + "/pyvenv.cfg"));
  }
  os::Fd above_, folder_;
  std::string name_, path_;
  bool locked_ = false;
};

base::Status nothing_there(const std::string& place) {
  struct stat s{};
  if (::lstat(place.c_str(), &s) != 0 && errno == ENOENT) return base::ok();
  TRY_ASSIGN(const std::optional<std::vector<std::string>> names, os::names_if_present(place));
  if (S_ISDIR(s.st_mode) && names && names->empty()) return base::ok();
  return base::fail(ErrorKind::kConfig, fmt::format("{} already exists", place))
      .with_hint("name a directory that does not exist, or move this one away");
}

base::Status make_fit(const std::string& root, const std::string& place, const Progress& progress, Unpacked& out) {
  TRY_ASSIGN(const Environment environment, read_environment(root));
  Move move{old_prefixes(environment, vote(environment)), place};
  if (out.extracted.facts && !out.extracted.facts->prefix.empty()) move.old_prefixes.push_back(out.extracted.facts->prefix);
  std::erase(move.old_prefixes, place);
  std::sort(move.old_prefixes.begin(), move.old_prefixes.end());
  move.old_prefixes.erase(std::unique(move.old_prefixes.begin(), move.old_prefixes.end()), move.old_prefixes.end());
  out.former = move.old_prefixes;
  TRY_ASSIGN(const Plan plan, plan_rehome(environment, std::move(move), progress));
  if (!plan.problems.empty()) {
    std::string why;
    for (size_t i = 0; i < std::min(plan.problems.size(), kShownProblems); ++i)
      why += (i > 0 ? "\n          " : "") + plan.problems[i].path + ": " + plan.problems[i].text;
    return base::fail(ErrorKind::kConfig, base::counted("{} files of the archive cannot be moved to {}", plan.problems.size(), place))
        .because(why)
        .with_hint("choose a shorter path");
  }
  TRY(carry_out(environment, plan, progress));
  out.rewritten = plan.changes.size();
  out.untouched = plan.untouched;
  return base::ok();
}

}  // namespace

base::Result<Unpacked> unpack(const std::string& file, const std::string& place, const UnpackProgress& progress) {
  TRY(nothing_there(place));
  const os::Fd archive(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!archive.valid()) {
    base::Error error = base::system_error("open", file);
    error.kind = ErrorKind::kUsage;
    return error;
  }
  TRY_ASSIGN(const uint64_t begins, archive_begins(archive, file));
  if (::lseek(archive.get(), static_cast<off_t>(begins), SEEK_SET) < 0) return base::system_error("lseek", file);
  TRY_ASSIGN(const Part part, Part::make(place));
  Unpacked out;
  TRY_ASSIGN(out.extracted, extract(archive, part.folder(), {}, progress.extracted));
  TRY_ASSIGN(const std::string root, part.root());
  TRY(make_fit(root, place, progress.files, out));
  (void)::rmdir(place.c_str());  // an empty one
  if (::chmod(root.c_str(), 0755) != 0 || ::rename(root.c_str(), place.c_str()) != 0) {
    base::Error error = base::system_error("rename", root + " to " + place);
    error.kind = ErrorKind::kUnfit;
    return error;
  }
  return out;
}

}  // namespace phalanx::envmove
