#include "hosts/connect/kept_connections.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "hosts/connect/openssh.h"
#include "hosts/connect/ssh_environment.h"
#include "os/capture.h"
#include "os/files.h"
#include "os/program.h"

namespace phalanx::hosts {
namespace {

constexpr std::chrono::milliseconds kPatience{3000};

bool is_our_socket(const std::string& path, std::string_view name) {
  struct stat s{};
  return name.size() == kSocketNameBytes && name.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         ::lstat(path.c_str(), &s) == 0 && S_ISSOCK(s.st_mode) && s.st_uid == ::geteuid();
}

}  // namespace

std::vector<std::string> kept_connections() {
  std::vector<std::string> sockets;
  const std::string folder = control_folder();
  const std::unique_ptr<DIR, int (*)(DIR*)> open(folder.empty() ? nullptr : ::opendir(folder.c_str()), ::closedir);
  if (!open) return sockets;
  while (const dirent* entry = ::readdir(open.get()))
    if (std::string path = folder + "/" + entry->d_name; is_our_socket(path, entry->d_name)) sockets.push_back(std::move(path));
  std::sort(sockets.begin(), sockets.end());
  return sockets;
}

bool close_kept_connection(const std::string& program, const std::string& socket) {
  os::CaptureSpec ssh;
  const std::string path = os::environment_value("PATH", "/usr/bin:/bin");
  base::Result<std::string> found = os::find_program(program, path, "/");
  if (!found.ok()) return false;
  ssh.program = *found;
  // The name of the host is not used: the socket leads to the connection. -F none: nothing of the configuration runs.
  ssh.arguments = {program, "-F", "none", "-o", "ControlPath=" + socket, "-O", "stop", "--", "kept-connection"};
  ssh.environment = {"PATH=" + path};
  ssh.deadline = kPatience;
  const os::Captured ended = os::capture(ssh);
  if (ended.started && ended.exit_code != 0) ::unlink(socket.c_str());  // nobody answers there
  forget_environment(socket);
  return !os::exists(socket);
}

}  // namespace phalanx::hosts
