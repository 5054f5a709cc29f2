// Files of an environment by their names below its folder, which was opened once. No step of a name may be a link, and what is read, looked
// at and replaced is one file in one folder: another user who may write somewhere in the environment cannot lead a repair out of it by
// putting a link, or another file, in the place of what was read.
#pragma once

#include <string>

#include "base/result.h"
#include "envmove/environment.h"
#include "os/fd.h"

namespace phalanx::envmove {

struct Spot {
  os::Fd folder;
  std::string name;  // in it
  std::string path;  // absolute, for messages
};
base::Result<Spot> find_spot(const Environment& environment, const std::string& path);

// A regular file. Error kConfig: something else lies there.
base::Result<os::Fd> open_spot(const Spot& spot);
base::Result<os::Fd> open_below(const Environment& environment, const std::string& path);

struct Content {
  Spot spot;
  struct stat stat{};  // of the very file that the data is from
  std::string data;
};
base::Result<Content> read_below(const Environment& environment, const std::string& path, size_t most_bytes);

}  // namespace phalanx::envmove
