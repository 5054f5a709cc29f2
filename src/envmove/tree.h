// The files of an environment: one walk, in the order of their names. Follows no link and reads no file.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace phalanx::envmove {

struct File {
  std::string path;    // below the root: "bin/python3.11"
  std::string target;  // of a symbolic link; a file has none
  struct stat stat{};

  bool is_link() const { return S_ISLNK(stat.st_mode); }
};

inline constexpr size_t kMostFiles = 2'000'000;
inline constexpr size_t kDeepestFolder = 128;

// Files and symbolic links; folders only as parts of paths. Sockets, pipes and devices are left out: an environment has none.
// Error kConfig: no folder, too many files, or a folder that cannot be read (a half-seen environment must not be judged).
base::Result<std::vector<File>> list_files(const std::string& root);

}  // namespace phalanx::envmove
