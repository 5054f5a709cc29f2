#include "envmove/below.h"

#include <fcntl.h>

#include <fmt/format.h>

#include "base/try.h"
#include "os/files.h"

namespace phalanx::envmove {

base::Result<Spot> find_spot(const Environment& environment, const std::string& path) {
  constexpr int kStep = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Spot spot{os::Fd(openat(environment.folder->get(), ".", kStep)), path, environment.root + "/" + path};
  size_t from = 0;
  for (size_t slash = path.find('/'); spot.folder.valid() && slash != std::string::npos; slash = path.find('/', from)) {
    spot.folder = os::Fd(openat(spot.folder.get(), path.substr(from, slash - from).c_str(), kStep));
    from = slash + 1;
  }
  if (!spot.folder.valid()) return base::system_error("open the folder of", spot.path);
  spot.name = path.substr(from);
  return spot;
}

base::Result<os::Fd> open_spot(const Spot& spot) {
  os::Fd file(openat(spot.folder.get(), spot.name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK));
  if (!file.valid()) return base::system_error("open", spot.path);
  TRY_ASSIGN(const struct stat found, os::stat_of(file, spot.path));
  if (!S_ISREG(found.st_mode)) return base::fail(base::ErrorKind::kConfig, fmt::format("{} is not a regular file", spot.path));
  return file;
}

base::Result<os::Fd> open_below(const Environment& environment, const std::string& path) {
  TRY_ASSIGN(const Spot spot, find_spot(environment, path));
  return open_spot(spot);
}

base::Result<Content> read_below(const Environment& environment, const std::string& path, size_t most_bytes) {
  Content out;
  TRY_ASSIGN(out.spot, find_spot(environment, path));
  TRY_ASSIGN(const os::Fd file, open_spot(out.spot));
  TRY_ASSIGN(out.stat, os::stat_of(file, out.spot.path));
  TRY_ASSIGN(out.data, os::read_rest(file, out.spot.path, most_bytes));
  return out;
}

}  // namespace phalanx::envmove
