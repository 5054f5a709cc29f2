// Lock files of torch.utils.cpp_extension that nobody holds: every later start waits for them in file_baton.py, without a word.
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

#include "machine/software/parts.h"

namespace phalanx::machine {
namespace {

constexpr int64_t kOld_s = 600;
constexpr size_t kMostFolders = 64;  // at each of two levels
constexpr size_t kMostProcesses = 8192;
constexpr size_t kMostDescriptors = 4096;  // of one process
constexpr size_t kMostLocks = 16;

std::string variable(const ProbeRequest& request, const std::string& name) {
  auto found = request.environment.find(name);
  return found == request.environment.end() ? "" : found->second;
}

bool is_old_lock(const Rooted& files, const std::string& path) {
  struct stat info;
  return ::stat(files.on_disk(path).c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::time(nullptr) - info.st_mtime > kOld_s;
}

// FileBaton keeps its lock file open as long as it holds it, so a holder on this machine shows in /proc. Links are compared as
// text: to stat what they name could wait for a dead server.
bool is_held(const Rooted& files, const std::string& path) {
  char buffer[PATH_MAX];
  if (!::realpath(files.on_disk(path).c_str(), buffer)) return true;
  std::string real = buffer;
  for (const std::string& pid : files.list("/proc", kMostProcesses)) {
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string folder = "/proc/" + pid + "/fd", on_disk = files.on_disk(folder);
    for (const std::string& fd : files.list(folder, kMostDescriptors)) {
      ssize_t n = ::readlink((on_disk + "/" + fd).c_str(), buffer, sizeof(buffer));
      if (n > 0 && std::string_view(buffer, static_cast<size_t>(n)) == real) return true;
    }
  }
  return false;
}

}  // namespace

void read_extension_locks(const Rooted& files, const ProbeRequest& request, SoftwareFacts& facts) {
  std::string top = variable(request, "TORCH_EXTENSIONS_DIR"), cache = variable(request, "XDG_CACHE_HOME");
  if (top.empty() && !cache.empty()) top = cache + "/torch_extensions";
  if (top.empty() && !variable(request, "HOME").empty()) top = variable(request, "HOME") + "/.cache/torch_extensions";
  if (top.empty() || top[0] != '/') return;
  auto look = [&](const std::string& folder) {
    std::string lock = folder + "/lock";
    if (facts.stale_locks.size() < kMostLocks && is_old_lock(files, lock) && !is_held(files, lock)) facts.stale_locks.push_back(lock);
  };
  for (const std::string& one : files.list(top, kMostFolders)) {
    look(top + "/" + one);
    for (const std::string& two : files.list(top + "/" + one, kMostFolders)) look(top + "/" + one + "/" + two);
  }
}

}  // namespace phalanx::machine
