#include "os/apart.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "os/fd.h"

namespace phalanx::os {
namespace {

void close_between(int first, int last) {
  if (first > last || ::syscall(SYS_close_range, first, last, 0) == 0) return;
  constexpr int kMost = 1 << 20;
  for (int fd = first; fd <= std::min(last, kMost); ++fd) ::close(fd);
}

// Descriptors 0, 1 and 2 become /dev/null, of all others only `keep` stays open.
void keep_only(std::vector<int> keep) {
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd <= 2; ++fd)
    if (null >= 0) ::dup2(null, fd);
  std::sort(keep.begin(), keep.end());
  int next = 3;
  for (int fd : keep) {
    close_between(next, fd - 1);
    next = std::max(next, fd + 1);
  }
  close_between(next, INT32_MAX);
}

// The argument area of this process, which `ps` shows: fields 48 and 49 of proc(5)'s stat.
void set_arguments(const char* name) {
  char text[4096];
  const Fd stat(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  const ssize_t n = stat.valid() ? ::read(stat.get(), text, sizeof(text) - 1) : -1;
  if (n <= 0) return;
  text[n] = 0;
  const char* field = std::strrchr(text, ')');  // field 2 ends here; a name may hold blanks
  for (int number = 2; field && number < 48; ++number) field = std::strchr(field + 1, ' ');
  unsigned long begin = 0, end = 0;
  if (!field || std::sscanf(field, " %lu %lu", &begin, &end) != 2 || end <= begin) return;
  char* area = reinterpret_cast<char*>(begin);  // NOLINT: it is where the kernel says
  std::memset(area, 0, end - begin);
  std::memcpy(area, name, std::min(std::strlen(name), end - begin - 1));
}

}  // namespace

base::Result<pid_t> fork_apart(const char* name, std::vector<int> keep, const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child < 0) return base::system_error("fork", name);
  if (child > 0) return child;
  ::setsid();
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::prctl(PR_SET_NAME, name);
  set_arguments(name);
  keep_only(std::move(keep));
  if (::chdir("/") != 0) ::_exit(1);
  body();
  ::_exit(0);
}

bool run_apart(const char* name, const std::function<void()>& body, std::chrono::milliseconds most) {
  return wait_apart(fork_apart(name, {}, body), most);
}

bool wait_apart(const base::Result<pid_t>& child, std::chrono::milliseconds most) {
  if (!child.ok()) return false;
  const Fd end(static_cast<int>(::syscall(SYS_pidfd_open, *child, 0)));
  pollfd ended{end.get(), POLLIN, 0};
  if (end.valid()) ::poll(&ended, 1, static_cast<int>(most.count()));
  return ::waitpid(*child, nullptr, end.valid() ? WNOHANG : 0) == *child;
}

}  // namespace phalanx::os
