// The files of an environment: one walk, in the order of their names. Follows no link and reads no file.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "os/fd.h"

namespace phalanx::envmove {

struct File {
  std::string path;    // below the root: "bin/python3.11"
  std::string target;  // of a symbolic link; a file has none
  struct stat stat{};

  bool is_link() const { return S_ISLNK(stat.st_mode); }
};

inline constexpr size_t kMostFiles = 2'000'000;
inline constexpr size_t kDeepestFolder = 128;

struct Tree {
  std::vector<File> files;
  std::string foreign;  // the first folder or file below the root that a user other than this one and root can change; empty: none
};

// Files and symbolic links; folders only as parts of paths. Sockets, pipes and devices are left out: an environment has none.
// Error kConfig: no folder, too many files, or a folder that cannot be read (a half-seen environment must not be judged).
base::Result<Tree> list_files(const os::Fd& folder, const std::string& root);  // root: for messages

// Whether a user other than this one and root can write there. The group that has the user's own number is taken for a private one.
bool others_can_change(const struct stat& file);
// The file itself, or the first folder above it, where that is so; a folder like /tmp, in which each may only change his own, is none.
// Empty: no such, or nothing lies there. path: absolute, without links.
std::string first_foreign(const std::string& path);

}  // namespace phalanx::envmove
