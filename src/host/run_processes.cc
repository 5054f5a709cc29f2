#include "host/run_processes.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "host/process_table.h"

namespace host {
namespace {

constexpr size_t kMostAncestors = 64;

std::vector<int64_t> own_line(const std::string& root) {
  std::vector<int64_t> line;
  if (!root.empty()) return line;
  ProcessStat stat;
  for (int64_t pid = ::getpid(); pid > 1 && line.size() < kMostAncestors && read_stat(root, pid, stat); pid = stat.parent)
    line.push_back(pid);
  return line;
}

// An agent or its guard, by the scratch folder it holds open.
bool holds_scratch(const std::string& root, int64_t pid, const std::string& run_id) {
  std::string folder = root + "/proc/" + std::to_string(pid) + "/fd";
  DIR* fds = ::opendir(folder.c_str());
  if (!fds) return false;
  bool found = false;
  while (dirent* entry = found ? nullptr : ::readdir(fds)) {
    char target[PATH_MAX];
    ssize_t n = ::readlink((folder + "/" + entry->d_name).c_str(), target, sizeof(target));
    found = n > 0 && std::string_view(target, static_cast<size_t>(n)).find("/phalanx-run-" + run_id + "-") != std::string_view::npos;
  }
  ::closedir(fds);
  return found;
}

}  // namespace

std::vector<RunProcess> run_processes(const std::string& root, const std::string& run_id, os::milliseconds budget) {
  std::vector<RunProcess> found;
  std::vector<int64_t> own = own_line(root);
  each_process(root, budget, [&](int64_t pid, const ProcessStat& stat) {
    if (stat.state == 'Z' || stat.state == 'X' || std::find(own.begin(), own.end(), pid) != own.end()) return true;
    bool ours = false;
    if (stat.comm == "phalanx-agent") {
      ours = holds_scratch(root, pid, run_id);
    } else {
      std::map<std::string, std::string> environment = environment_of(root, pid);
      auto id = environment.find(kRunIdVariable);
      ours = id != environment.end() && id->second == run_id;
    }
    if (!ours) return true;
    std::string command = command_line(root, pid);
    found.push_back({pid, stat.start_ticks, command.empty() ? stat.comm : command});
    return true;
  });
  return found;
}

}  // namespace host
