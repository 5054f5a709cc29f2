#include "envmove/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "os/fd.h"

namespace phalanx::envmove {
namespace {

using base::ErrorKind;

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

class Walk {
 public:
  explicit Walk(std::string root) : root_(std::move(root)) {}

  base::Status folder(int parent, const std::string& name, const std::string& prefix, size_t depth) {
    if (depth > kDeepestFolder)
      return base::fail(ErrorKind::kConfig, fmt::format("folders are nested too deeply: {}", base::quote(prefix)));
    os::Fd opened(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!opened.valid()) return failed("open", prefix);
    std::unique_ptr<DIR, CloseFolder> listing(fdopendir(dup(opened.get())));
    if (!listing) return failed("open", prefix);
    std::vector<std::string> folders;
    errno = 0;
    while (dirent* entry = readdir(listing.get())) {
      const std::string found = entry->d_name;
      if (found != "." && found != "..") TRY(add(opened.get(), found, prefix, folders));
      errno = 0;
    }
    if (errno != 0) return failed("read", prefix);
    listing.reset();
    for (const std::string& one : folders) TRY(folder(opened.get(), one, prefix + one + "/", depth + 1));
    return base::ok();
  }

  Tree tree;

 private:
  base::Error failed(const char* what, const std::string& prefix) const { return base::system_error(what, root_ + "/" + prefix); }

  base::Status add(int folder, const std::string& name, const std::string& prefix, std::vector<std::string>& folders) {
    File file{prefix + name, {}, {}};
    if (fstatat(folder, name.c_str(), &file.stat, AT_SYMLINK_NOFOLLOW) != 0) return failed("stat", file.path);
    if (tree.foreign.empty() && others_can_change(file.stat)) tree.foreign = file.path;
    if (S_ISDIR(file.stat.st_mode)) {
      folders.push_back(name);
      return base::ok();
    }
    if (file.is_link()) {
      char target[4096];
      const ssize_t size = readlinkat(folder, name.c_str(), target, sizeof target);
      if (size < 0) return failed("read the link", file.path);
      file.target.assign(target, static_cast<size_t>(size));
    } else if (!S_ISREG(file.stat.st_mode)) {
      return base::ok();
    }
    if (tree.files.size() >= kMostFiles)
      return base::fail(ErrorKind::kConfig, base::counted("{} has more than {} files", root_, kMostFiles));
    tree.files.push_back(std::move(file));
    return base::ok();
  }

  std::string root_;
};

}  // namespace

base::Result<Tree> list_files(const os::Fd& folder, const std::string& root) {
  Walk walk(root);
  TRY(walk.folder(folder.get(), ".", "", 0));
  std::sort(walk.tree.files.begin(), walk.tree.files.end(), [](const File& a, const File& b) { return a.path < b.path; });
  return std::move(walk.tree);
}

bool others_can_change(const struct stat& file) {
  if (file.st_uid != geteuid() && file.st_uid != 0) return true;
  if (S_ISLNK(file.st_mode)) return false;
  const bool own_group = file.st_gid == getegid() && getegid() == geteuid();
  return (file.st_mode & S_IWOTH) != 0 || ((file.st_mode & S_IWGRP) != 0 && !own_group);
}

std::string first_foreign(const std::string& path) {
  struct stat found{};
  if (lstat(path.c_str(), &found) == 0 && others_can_change(found)) return path;
  for (std::string at = path; at.size() > 1;) {
    at.erase(std::max<size_t>(at.rfind('/'), 1));
    if (lstat(at.c_str(), &found) != 0) return "";
    const bool each_his_own = (found.st_mode & S_ISVTX) != 0 && (found.st_uid == geteuid() || found.st_uid == 0);
    if (!each_his_own && others_can_change(found)) return at;
  }
  return "";
}

}  // namespace phalanx::envmove
