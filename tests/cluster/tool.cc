#include "tool.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/try.h"
#include "os/fd.h"

namespace phalanx::testbed {

namespace {

// Input and output go through memory files: nothing can block on a full pipe.
base::Result<os::Fd> memory_file(const std::string& text) {
  os::Fd fd(::memfd_create("tool", MFD_CLOEXEC));
  if (!fd.valid()) return base::system_error("memfd_create", "tool");
  if (!text.empty() && ::pwrite(fd.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return base::system_error("write", "memory file");
  }
  return fd;
}

std::string content(const os::Fd& fd) {
  std::string text(static_cast<size_t>(::lseek(fd.get(), 0, SEEK_END)), '\0');
  ssize_t n = ::pread(fd.get(), text.data(), text.size(), 0);
  text.resize(n < 0 ? 0 : static_cast<size_t>(n));
  return text;
}

[[noreturn]] void become(const std::vector<std::string>& argv, int in, int out, int err, int netns) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::dup2(err, 2);
  if (netns >= 0 && ::setns(netns, CLONE_NEWNET) != 0) ::_exit(126);
  std::vector<char*> arguments;
  for (const auto& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

}  // namespace

base::Result<std::string> run_tool(const std::vector<std::string>& argv, const std::string& input, int netns) {
  TRY_ASSIGN(os::Fd in, memory_file(input));
  TRY_ASSIGN(os::Fd out, memory_file({}));
  TRY_ASSIGN(os::Fd err, memory_file({}));
  pid_t pid = ::fork();
  if (pid < 0) return base::system_error("fork", argv[0]);
  if (pid == 0) become(argv, in.get(), out.get(), err.get(), netns);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return base::system_error("waitpid", argv[0]);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return content(out);
  std::string line;
  for (const auto& argument : argv) line += (line.empty() ? "" : " ") + argument;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return base::fail(base::ErrorKind::kUnfit, argv[0] + " is not installed");
  return base::fail(base::ErrorKind::kInternal, line + " failed").because(content(err));
}

}  // namespace phalanx::testbed
