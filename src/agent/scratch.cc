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

namespace phalanx::agent {
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

std::string read_left_file(const std::string& path, size_t most_bytes) {
  os::Fd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return "";
  if (info.st_uid != ::geteuid() || static_cast<size_t>(info.st_size) > most_bytes) return "";
  std::string text(static_cast<size_t>(info.st_size), '\0');
  ssize_t got = ::pread(fd.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

std::vector<std::string> scratches_of(const std::string& run_id) {
  std::vector<std::string> found;
  for (const std::string& place : places()) {
    DIR* folder = ::opendir(place.c_str());
    if (!folder) continue;
    while (dirent* entry = ::readdir(folder))
      if (std::string_view(entry->d_name).starts_with(kPrefix + run_id + "-")) found.push_back(place + "/" + entry->d_name);
    ::closedir(folder);
  }
  std::erase_if(found, [](const std::string& path) { return !is_ours(path); });
  return found;
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

}  // namespace phalanx::agent
