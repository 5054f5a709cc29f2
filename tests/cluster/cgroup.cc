#include "cgroup.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "base/try.h"
#include "os/fd.h"
#include "state.h"

namespace phalanx::testbed {

namespace {

constexpr auto kPatience = std::chrono::seconds(10);

// Waits until cgroup.events holds the line, "frozen 1" or "populated 0". The kernel wakes pollers at each change.
base::Status await_event(const std::string& folder, const std::string& line) {
  std::string path = folder + "/cgroup.events";
  os::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return base::system_error("open", path);
  auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    char text[256];
    ssize_t n = ::pread(fd.get(), text, sizeof text, 0);
    if (n < 0) return base::system_error("read", path);
    if (std::string_view(text, static_cast<size_t>(n)).find(line) != std::string_view::npos) return base::ok();
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) return base::fail(base::ErrorKind::kTimeout, path + " never said " + line);
    pollfd poll_fd{fd.get(), POLLPRI, 0};
    ::poll(&poll_fd, 1, static_cast<int>(left));
  }
}

}  // namespace

base::Result<std::string> cgroup_root() {
  std::ifstream mounts("/proc/self/mounts");
  for (std::string line; std::getline(mounts, line);) {
    auto fields = base::split_words(line);
    if (fields.size() > 2 && fields[2] == "cgroup2") return std::string(fields[1]);
  }
  return base::fail(base::ErrorKind::kUnfit, "no cgroup2 file system is mounted");
}

base::Result<std::string> host_cgroup(const std::string& cluster, const std::string& host) {
  TRY_ASSIGN(std::string root, cgroup_root());
  std::string folder = root + "/phalanx-testbed." + cluster;
  return host.empty() ? folder : folder + "/" + host;
}

base::Status make_cgroup(const std::string& folder) { return make_folder(folder); }

base::Status join_cgroup(const std::string& folder) {
  std::string path = folder + "/cgroup.procs";
  os::Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return base::system_error("open", path);
  if (::write(fd.get(), "0", 1) != 1) return base::system_error("write", path);
  return base::ok();
}

std::vector<pid_t> cgroup_pids(const std::string& folder) {
  std::ifstream stream(folder + "/cgroup.procs");
  std::vector<pid_t> pids;
  for (pid_t pid; stream >> pid;) pids.push_back(pid);
  return pids;
}

base::Status freeze_cgroup(const std::string& folder, bool frozen) {
  TRY(write_text(folder + "/cgroup.freeze", frozen ? "1" : "0"));
  return await_event(folder, frozen ? "frozen 1" : "frozen 0");
}

base::Status kill_cgroup(const std::string& folder) {
  TRY(write_text(folder + "/cgroup.kill", "1"));
  return await_event(folder, "populated 0");
}

void remove_cgroup(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_directory(error)) remove_cgroup(entry.path());
  }
  ::rmdir(folder.c_str());
}

}  // namespace phalanx::testbed
