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
    if (depth > kDeepestFolder) return base::fail(ErrorKind::kConfig, "folders are nested too deeply: " + base::quote(prefix));
    os::Fd opened(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | (depth ? O_NOFOLLOW : 0)));
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

  std::vector<File> files;

 private:
  base::Error failed(const char* what, const std::string& prefix) const { return base::system_error(what, root_ + "/" + prefix); }

  base::Status add(int folder, const std::string& name, const std::string& prefix, std::vector<std::string>& folders) {
    File file{prefix + name, {}, {}};
    if (fstatat(folder, name.c_str(), &file.stat, AT_SYMLINK_NOFOLLOW) != 0) return failed("look up", file.path);
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
    if (files.size() >= kMostFiles) return base::fail(ErrorKind::kConfig, base::counted("{} has more than {} files", root_, kMostFiles));
    files.push_back(std::move(file));
    return base::ok();
  }

  std::string root_;
};

}  // namespace

base::Result<std::vector<File>> list_files(const std::string& root) {
  Walk walk(root);
  TRY(walk.folder(AT_FDCWD, root, "", 0));
  std::sort(walk.files.begin(), walk.files.end(), [](const File& a, const File& b) { return a.path < b.path; });
  return std::move(walk.files);
}

}  // namespace phalanx::envmove
