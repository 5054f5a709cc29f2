#include "agent/scratch.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/files.h"

namespace agent {
namespace {
int remove_entry(const char* path, const struct stat*, int, FTW*) { return ::remove(path); }
}  // namespace

std::optional<Scratch> Scratch::create(const std::string& run_id) {
  for (const std::string& folder : {os::environment_value("TMPDIR", "/tmp"), std::string("/dev/shm")}) {
    std::string path = folder + "/phalanx-run-" + run_id + "-XXXXXX";
    if (::mkdtemp(path.data())) return Scratch(path, os::Fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)));
  }
  return std::nullopt;
}

void Scratch::remove() {
  if (path_.empty()) return;
  ::nftw(path_.c_str(), remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
  path_.clear();
}

}  // namespace agent
