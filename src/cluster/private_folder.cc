#include "cluster/private_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include "os/files.h"

namespace cluster {

bool private_folder(const std::string& path) {
  if (!os::make_folders(path).ok()) return false;
  struct stat s{};
  return ::lstat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == ::getuid() && (s.st_mode & 077) == 0;
}

}  // namespace cluster
