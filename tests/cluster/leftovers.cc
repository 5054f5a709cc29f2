#include "leftovers.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include "os/fd.h"

namespace phalanx::testbed {
namespace {

std::vector<HostProcess> left_on(const Cluster& cluster, const std::string& host, const std::string& bystander) {
  std::vector<HostProcess> left;
  for (const auto& process : cluster.processes(host)) {
    bool ssh_own = process.name == "sshd" || (process.name == "ssh" && process.command.find("[mux]") != std::string::npos);
    if (!ssh_own && process.command != bystander) left.push_back(process);
  }
  return left;
}

}  // namespace

std::vector<std::string> leftovers(const Cluster& cluster, const std::vector<std::string>& hosts, const std::string& bystander,
                                   milliseconds most) {
  Instant deadline = std::chrono::steady_clock::now() + most;
  std::vector<std::string> text;
  for (const std::string& host : hosts) {
    while (true) {
      auto left = left_on(cluster, host, bystander);
      auto remaining = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
      if (left.empty() || remaining.count() <= 0) {
        for (const auto& process : left) text.push_back(fmt::format("{}: {} {} ({})", host, process.pid, process.command, process.name));
        break;
      }
      os::Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, left[0].pid, 0)));
      pollfd fd{handle.get(), POLLIN, 0};
      if (handle.valid()) ::poll(&fd, 1, static_cast<int>(remaining.count()));
    }
  }
  return text;
}

}  // namespace phalanx::testbed
