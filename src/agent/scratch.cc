#include "agent/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <vector>

#include "os/files.h"

namespace agent {
namespace {

constexpr const char* kPrefix = "phalanx-run-";

int remove_entry(const char* path, const struct stat*, int, FTW*) { return ::remove(path); }

std::vector<std::string> places() { return {os::environment_value("TMPDIR", "/tmp"), "/dev/shm"}; }

bool is_ours(const std::string& path) {
  struct stat info{};
  return path.substr(path.rfind('/') + 1).starts_with(kPrefix) && ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid();
}

}  // namespace

void remove_scratch(const std::string& path) {
  if (is_ours(path)) ::nftw(path.c_str(), remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

int remove_scratches(const std::string& run_id) {
  int removed = 0;
  for (const std::string& place : places()) {
    DIR* folder = ::opendir(place.c_str());
    if (!folder) continue;
    std::vector<std::string> found;
    while (dirent* entry = ::readdir(folder))
      if (std::string_view(entry->d_name).starts_with(kPrefix + run_id + "-")) found.push_back(place + "/" + entry->d_name);
    ::closedir(folder);
    for (const std::string& path : found) {
      if (!is_ours(path)) continue;
      remove_scratch(path);
      ++removed;
    }
  }
  return removed;
}

std::optional<Scratch> Scratch::create(const std::string& run_id) {
  for (const std::string& folder : places()) {
    std::string path = folder + "/" + kPrefix + run_id + "-XXXXXX";
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
