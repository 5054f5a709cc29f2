#include "hosts/connect/private_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "os/files.h"

namespace phalanx::hosts {

namespace {

bool only_ours_to_change(const std::string& folder) {
  struct stat s{};
  if (::stat(folder.c_str(), &s) != 0 || (s.st_uid != ::getuid() && s.st_uid != 0)) return false;
  return (s.st_mode & 022) == 0 || (s.st_mode & S_ISVTX) != 0;
}

}  // namespace

bool private_folder(const std::string& path) {
  if (!os::make_folders(path).ok()) return false;
  struct stat s{};
  if (::lstat(path.c_str(), &s) != 0 || !S_ISDIR(s.st_mode) || s.st_uid != ::getuid() || (s.st_mode & 077) != 0) return false;
  // The folders above it as they are, not as links name them.
  std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), std::free);
  if (!real) return false;
  for (std::string above = real.get(); above.size() > 1;) {
    above.erase(std::max<size_t>(above.rfind('/'), 1));
    if (!only_ours_to_change(above)) return false;
    if (above == "/") break;
  }
  return true;
}

}  // namespace phalanx::hosts
