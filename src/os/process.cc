#include "os/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/try.h"
#include "os/descriptor_limit.h"
#include "os/fd.h"

namespace phalanx::os {
namespace {

struct ChildFailure {
  int step;
  int error_number;
};
enum Step { kFds, kDirectory, kExec, kSession };

void close_from(int first) {
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  for (int fd = first; fd < static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 16)); ++fd) ::close(fd);
}

// Moves descriptors to their places in the child: first out of the way of every target, then down. Async-signal-safe.
bool place_fds(const SpawnSpec& spec, int& report) {
  int high = 3;
  for (auto [ours, theirs] : spec.fds) high = std::max(high, theirs + 1);
  int moved[32];
  size_t count = spec.fds.size();
  if (count > 30) return false;
  for (size_t i = 0; i < count; ++i) {
    moved[i] = ::fcntl(spec.fds[i].first, F_DUPFD, high);
    if (moved[i] < 0) return false;
    high = std::max(high, moved[i] + 1);
  }
  int kept_report = ::fcntl(report, F_DUPFD_CLOEXEC, high);
  if (kept_report < 0) return false;
  report = kept_report;
  int top = 2;
  for (size_t i = 0; i < count; ++i) {
    if (::dup2(moved[i], spec.fds[i].second) < 0) return false;
    top = std::max(top, spec.fds[i].second);
  }
  auto named = [&](int fd) { return std::any_of(spec.fds.begin(), spec.fds.end(), [&](auto& p) { return p.second == fd; }); };
  for (int fd = 0; fd <= 2; ++fd) {
    if (named(fd)) continue;
    int null = ::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
    if (null < 0 || (null != fd && (::dup2(null, fd) < 0 || ::close(null) != 0))) return false;
  }
  for (int fd = 3; fd < kept_report; ++fd)
    if (!named(fd)) ::close(fd);
  close_from(kept_report + 1);
  return true;
}

[[noreturn]] void run_child(const SpawnSpec& spec, char* const* argv, char* const* envp, int report, pid_t parent,
                            const rlimit* descriptors) {
  ChildFailure failure{kFds, 0};
  sigset_t none;
  sigemptyset(&none);
  for (int s = 1; s < NSIG; ++s) ::signal(s, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (spec.death_signal != 0) {
    ::prctl(PR_SET_PDEATHSIG, spec.death_signal);
    if (::getppid() != parent) ::_exit(127);  // the parent died before prctl took hold
  }
  if (spec.join_cgroup >= 0 && ::write(spec.join_cgroup, "0", 1) != 1) {}
  if (spec.nice != 0 && ::setpriority(PRIO_PROCESS, 0, spec.nice) != 0) {}
  bool good = place_fds(spec, report);
  if (good && spec.new_session) {
    failure.step = kSession;
    good = ::setsid() >= 0;
  }
  if (good && !spec.directory.empty()) {
    failure.step = kDirectory;
    good = ::chdir(spec.directory.c_str()) == 0;
  }
  if (descriptors && ::setrlimit(RLIMIT_NOFILE, descriptors) != 0) {}  // lower than ours, so it is allowed
  if (good) {
    failure.step = kExec;
    ::execve(spec.program.c_str(), argv, envp);
  }
  failure.error_number = errno;
  if (::write(report, &failure, sizeof(failure)) < 0) {}
  ::_exit(127);
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

base::Error child_error(const SpawnSpec& spec, ChildFailure failure) {
  switch (failure.step) {
    case kDirectory: return base::system_error("chdir", spec.directory, failure.error_number);
    case kExec: return base::system_error("exec", spec.program, failure.error_number);
    case kSession: return base::system_error("setsid", "", failure.error_number);
    default: return base::system_error("dup2", "", failure.error_number);
  }
}

}  // namespace

namespace {

// vfork: the child runs in our memory while we are stopped, until it execs. Nothing is copied and nothing is faulted in twice, which
// is most of what fork costs a launcher of many programs. So the child may only make system calls, and no signal handler may run
// in it: all signals are blocked around the call, and run_child sets the handlers to their defaults before it unblocks them.
// That the caller is stopped is what a caller that must not wait cannot have: copy it is then.
[[gnu::noinline]] pid_t start_child(const SpawnSpec& spec, char* const* argv, char* const* envp, int report, bool copy = false) {
  sigset_t all, before;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, &before);
  pid_t parent = ::getpid();
  std::optional<rlimit> descriptors = original_descriptor_limit();
  pid_t pid = copy ? ::fork() : ::vfork();
  if (pid == 0) run_child(spec, argv, envp, report, parent, descriptors ? &*descriptors : nullptr);
  int error_number = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  errno = error_number;
  return pid;
}

}  // namespace

base::Result<pid_t> spawn(const SpawnSpec& spec) {
  PHALANX_CHECK(!spec.arguments.empty());
  std::vector<char*> argv = pointers(spec.arguments);
  std::vector<char*> envp = pointers(spec.environment);
  TRY_ASSIGN(PipeEnds report, make_pipe());
  pid_t pid = start_child(spec, argv.data(), envp.data(), report.write.get());
  if (pid < 0) return base::system_error("fork", spec.program);
  report.write.reset();
  ChildFailure failure{};
  ssize_t n;
  do n = ::read(report.read.get(), &failure, sizeof(failure));
  while (n < 0 && errno == EINTR);
  if (n == 0) return pid;
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (n != static_cast<ssize_t>(sizeof(failure)))
    return base::fail(base::ErrorKind::kInternal, fmt::format("the child of {} exited before exec", spec.program));
  return child_error(spec, failure);
}

base::Result<Starting> begin_spawn(const SpawnSpec& spec) {
  PHALANX_CHECK(!spec.arguments.empty());
  std::vector<char*> argv = pointers(spec.arguments);
  std::vector<char*> envp = pointers(spec.environment);
  TRY_ASSIGN(PipeEnds report, make_pipe());
  TRY(set_nonblocking(report.read.get()));
  pid_t pid = start_child(spec, argv.data(), envp.data(), report.write.get(), true);
  if (pid < 0) return base::system_error("fork", spec.program);
  return Starting{pid, std::move(report.read)};
}

std::optional<base::Status> spawned(const SpawnSpec& spec, const Starting& starting) {
  ChildFailure failure{};
  ssize_t n;
  do n = ::read(starting.report.get(), &failure, sizeof(failure));
  while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EAGAIN) return std::nullopt;
  if (n == 0) return base::ok();
  if (n != static_cast<ssize_t>(sizeof(failure)))
    return base::fail(base::ErrorKind::kInternal, fmt::format("the child of {} exited before exec", spec.program));
  return child_error(spec, failure);
}

void set_process_title(char** argv, const std::string& comm, const std::string& title) {
  ::prctl(PR_SET_NAME, comm.c_str());
  if (!argv || !argv[0]) return;
  char* end = argv[0] + std::strlen(argv[0]) + 1;
  for (char** a = argv + 1; *a; ++a)
    if (*a == end) end = *a + std::strlen(*a) + 1;
  size_t room = static_cast<size_t>(end - argv[0]);
  std::memset(argv[0], 0, room);
  std::memcpy(argv[0], title.c_str(), std::min(title.size(), room - 1));
}

bool is_ignored(int signal_number) {
  struct sigaction now{};
  return ::sigaction(signal_number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

std::string signal_name(int signal_number) {
  const char* name = ::sigabbrev_np(signal_number);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal_number);
}

}  // namespace phalanx::os
