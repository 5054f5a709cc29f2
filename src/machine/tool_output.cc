#include "machine/tool_output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "os/clock.h"
#include "os/fd.h"
#include "os/process.h"
#include "os/program.h"

namespace phalanx::machine {

std::optional<std::string> tool_output(const std::string& program, const std::vector<std::string>& arguments,
                                       std::chrono::milliseconds most, size_t max_bytes) {
  constexpr const char* kFolders = "/usr/sbin:/usr/bin:/sbin:/bin";
  base::Result<std::string> path = os::find_program(program, kFolders, "/");
  int ends[2];
  if (!path.ok() || ::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  os::Fd out(ends[0]), in(ends[1]);
  os::SpawnSpec spec;
  spec.program = *path;
  spec.arguments = {program};
  spec.arguments.insert(spec.arguments.end(), arguments.begin(), arguments.end());
  spec.environment = {std::string("PATH=") + kFolders, "LC_ALL=C"};
  spec.fds = {{in.get(), 1}};
  spec.death_signal = SIGKILL;
  base::Result<pid_t> pid = os::spawn(spec);
  if (!pid.ok()) return std::nullopt;
  in.reset();
  std::string text;
  bool ended = false;
  os::Mono end = os::mono_now() + most;
  while (!ended && text.size() <= max_bytes) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - os::mono_now()).count();
    pollfd waiting{out.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) <= 0) break;
    char buffer[64 << 10];
    ssize_t got = ::read(out.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    ended = got <= 0;
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
  }
  if (!ended) ::kill(*pid, SIGKILL);
  int status = 0;
  while (::waitpid(*pid, &status, 0) < 0 && errno == EINTR) {}
  if (!ended || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return text;
}

}  // namespace phalanx::machine
