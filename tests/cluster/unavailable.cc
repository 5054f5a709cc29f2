#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "cgroup.h"
#include "cluster.h"
#include "tool.h"

namespace phalanx::testbed {

namespace {

// Whether this process may make the namespaces of a host; tried in a child.
bool may_unshare() {
  pid_t pid = ::fork();
  if (pid == 0) ::_exit(::unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID) == 0 ? 0 : 1);
  int status = 1;
  return pid > 0 && ::waitpid(pid, &status, 0) == pid && status == 0;
}

bool kernel_has(const std::string& file_system) {
  std::ifstream list("/proc/filesystems");
  for (std::string word; list >> word;) {
    if (word == file_system) return true;
  }
  return false;
}

std::optional<std::string> find_reason() {
  if (::geteuid() != 0) return "needs root (namespaces, network devices)";
  const std::pair<const char*, const char*> programs[] = {{"/usr/sbin/sshd", "openssh-server"},
                                                          {"/usr/bin/ssh", "openssh-client"},
                                                          {"/usr/sbin/nft", "nftables"},
                                                          {"/usr/sbin/tc", "iproute2"}};
  for (auto [path, package] : programs) {
    if (::access(path, X_OK) != 0) return std::string(path) + " is missing (package " + package + ")";
  }
  if (!may_unshare()) return "this machine does not allow new namespaces (unshare: not permitted)";
  auto root = cgroup_root();
  if (!root.ok()) return root.error().message;
  if (::access(root->c_str(), W_OK) != 0) return *root + " cannot be written";
  if (!kernel_has("overlay")) return "the kernel has no overlay file system";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> unavailable() {
  static const std::optional<std::string> reason = find_reason();
  return reason;
}

}  // namespace phalanx::testbed
