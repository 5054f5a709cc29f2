#include "cli/project/find_project.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "cli/project/project_file.h"
#include "os/files.h"

namespace phalanx::cli {
namespace {

using base::Error;
using base::Result;

constexpr size_t kLargestAccountFile = 16 << 20;

std::string above(const std::string& folder) { return folder.substr(0, std::max<size_t>(folder.rfind('/'), 1)); }
std::string in(const std::string& folder, const std::string& name) { return folder == "/" ? "/" + name : folder + "/" + name; }

bool is_own_group(gid_t group) {
  auto passwd = os::read_file("/etc/passwd", kLargestAccountFile), groups = os::read_file("/etc/group", kLargestAccountFile);
  return passwd.ok() && groups.ok() && is_private_group(group, ::getuid(), *passwd, *groups);
}

// Why it may not be used; `fix` is what its owner can type, if this user is one who can.
Error unsafe(const std::string& file, const std::string& why, const std::string& fix) {
  const std::string named = fmt::format("--project {} uses it as it is; --no-project starts without it", base::shell_quote(file));
  return base::fail(base::ErrorKind::kConfig, fmt::format("{}: this project file is not used", base::printable(file, 300)))
      .because(why)
      .with_hint(fix.empty() ? named : fmt::format("{}    # or: {}", fix, named));
}

// Nothing: only this user and root can change it.
std::optional<Error> changeable(const std::string& file, const std::string& path, const struct stat& info) {
  const std::string shown = base::printable(path, 300);
  if (info.st_uid != ::getuid() && info.st_uid != 0)
    return unsafe(file, fmt::format("{} belongs to another user (uid {}), and a project file can run programs as you", shown, info.st_uid),
                  "");
  if ((info.st_mode & 022) == 0 || (S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX))) return std::nullopt;
  if ((info.st_mode & 002) == 0 && is_own_group(info.st_gid)) return std::nullopt;
  const bool ours = info.st_uid == ::getuid();
  return unsafe(file,
                fmt::format("{} can be written by other users (mode {:04o}), and a project file can run programs as you", shown,
                            info.st_mode & 07777u),
                ours ? fmt::format("chmod go-w {}", base::shell_quote(path)) : "");
}

// Another user's file in a folder where everyone may leave files, as in /tmp.
bool left_by_a_stranger(const struct stat& folder, const struct stat& file) {
  constexpr mode_t kOpenToAll = S_ISVTX | S_IWOTH;
  return (folder.st_mode & kOpenToAll) == kOpenToAll && file.st_uid != ::getuid() && file.st_uid != 0;
}

Result<FoundProject> read_safely(const std::string& folder) {
  const std::string path = in(folder, kProjectFileName);
  TRY_ASSIGN(const os::Fd file, os::open_regular(path));
  TRY_ASSIGN(const struct stat info, os::stat_of(file, path));
  if (auto error = changeable(path, path, info)) return *std::move(error);
  for (std::string at = folder;; at = above(at)) {
    struct stat of_folder{};
    if (::lstat(at.c_str(), &of_folder) != 0) return base::system_error("lstat", at);
    if (auto error = changeable(path, at, of_folder)) return *std::move(error);
    if (at == "/") break;
  }
  TRY_ASSIGN(std::string text, os::read_rest(file, path, kLargestProjectFile));
  return FoundProject{path, std::move(text)};
}

}  // namespace

Result<std::optional<FoundProject>> find_project(const std::string& folder, const std::string& home) {
  struct stat start{}, last{};
  if (folder.empty() || folder[0] != '/' || ::stat(folder.c_str(), &start) != 0) return std::optional<FoundProject>();
  const bool has_home = !home.empty() && ::stat(home.c_str(), &last) == 0;  // by identity: HOME may lead through links
  for (std::string at = folder;; at = above(at)) {
    struct stat here{};
    if (::stat(at.c_str(), &here) != 0 || here.st_dev != start.st_dev) break;
    struct stat file{};
    const std::string path = in(at, kProjectFileName);
    const bool there = ::lstat(path.c_str(), &file) == 0;
    if (there && !left_by_a_stranger(here, file)) {
      if (S_ISLNK(file.st_mode)) return unsafe(path, "it is a symbolic link: the owner of the link chose the file", "");
      if (!S_ISREG(file.st_mode)) return unsafe(path, "it is not a regular file", "");
      TRY_ASSIGN(FoundProject found, read_safely(at));
      return std::optional<FoundProject>(std::move(found));
    }
    if (!there && errno == EACCES) break;
    if (!there && errno != ENOENT && errno != ENOTDIR) return base::system_error("lstat", path);
    if (at == "/" || (has_home && here.st_dev == last.st_dev && here.st_ino == last.st_ino)) break;
  }
  return std::optional<FoundProject>();
}

bool only_ours(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> folder(::realpath(above(path).c_str(), nullptr), &std::free);
  if (!folder) return false;
  struct stat info{};
  const std::string file = in(folder.get(), path.substr(path.rfind('/') + 1));
  if (::lstat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || changeable(file, file, info)) return false;
  for (std::string at = folder.get();; at = above(at)) {
    if (::lstat(at.c_str(), &info) != 0 || changeable(file, at, info)) return false;
    if (at == "/") return true;
  }
}

bool is_private_group(gid_t group, uid_t user, std::string_view passwd, std::string_view groups) {
  const std::string gid = std::to_string(group), uid = std::to_string(user);
  std::string_view name;
  for (std::string_view line : base::split_lines(passwd)) {
    const std::vector<std::string_view> fields = base::split(line, ':');
    if (fields.size() < 4) continue;
    if (fields[2] == uid) name = fields[0];
    else if (fields[3] == gid) return false;
  }
  bool listed = false;
  for (std::string_view line : base::split_lines(groups)) {
    const std::vector<std::string_view> fields = base::split(line, ':');
    if (fields.size() < 4 || fields[2] != gid) continue;
    if (name.empty() || fields[0] != name || (!fields[3].empty() && fields[3] != name)) return false;
    listed = true;
  }
  return listed;
}

Result<FoundProject> read_project(const std::string& path, const std::string& folder) {
  FoundProject found{path.starts_with('/') ? path : in(folder, path), ""};
  auto text = os::read_file(found.path, kLargestProjectFile);
  if (!text.ok()) {
    Error error = std::move(text).error();
    error.kind = base::ErrorKind::kConfig;
    return std::move(error).within("reading the file of --project");
  }
  found.text = std::move(text).value();
  return found;
}

}  // namespace phalanx::cli
