#include "process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ostream>

#include "base/try.h"
#include "cgroup.h"

namespace phalanx::testbed {

namespace {

constexpr int kStay = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC;  // entered by the child; the pid namespace by fork

// The child's ends of its three streams, and ours. With a terminal, stdin and stdout of ours are its master.
struct Streams {
  os::Fd child_in, child_out, child_err, in, out, err;
};

base::Result<Streams> open_terminal() {
  Streams streams;
  streams.out = os::Fd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  char name[64];
  if (!streams.out.valid() || ::grantpt(streams.out.get()) != 0 || ::unlockpt(streams.out.get()) != 0 ||
      ::ptsname_r(streams.out.get(), name, sizeof name) != 0) {
    return base::system_error("open", "/dev/ptmx");
  }
  winsize size{30, 100, 0, 0};
  ::ioctl(streams.out.get(), TIOCSWINSZ, &size);
  streams.child_in = os::Fd(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!streams.child_in.valid()) return base::system_error("open", name);
  streams.in = os::Fd(::fcntl(streams.out.get(), F_DUPFD_CLOEXEC, 0));
  return streams;
}

base::Result<Streams> open_pipes(bool with_input) {
  Streams streams;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::system_error("pipe", "stdout");
  streams.out = os::Fd(ends[0]);
  streams.child_out = os::Fd(ends[1]);
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::system_error("pipe", "stderr");
  streams.err = os::Fd(ends[0]);
  streams.child_err = os::Fd(ends[1]);
  if (!with_input) {
    streams.child_in = os::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return streams;
  }
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::system_error("pipe", "stdin");
  streams.child_in = os::Fd(ends[0]);
  streams.in = os::Fd(ends[1]);
  return streams;
}

[[noreturn]] void give_up(const char* what, const std::string& operand) {
  std::string text = fmt::format("testbed: {} {}: error {}\n", what, operand, errno);
  if (::write(2, text.data(), text.size()) < 0) ::_exit(126);
  ::_exit(127);
}

void set_environment(const Command& command, const passwd& user) {
  ::clearenv();
  ::setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
  ::setenv("HOME", user.pw_dir, 1);
  ::setenv("USER", user.pw_name, 1);
  ::setenv("LOGNAME", user.pw_name, 1);
  ::setenv("SHELL", "/bin/bash", 1);
  ::setenv("LANG", "C.UTF-8", 1);
  if (command.stdio == Command::kTerminal) ::setenv("TERM", "xterm-256color", 1);
  for (const auto& [key, value] : command.env) ::setenv(key.c_str(), value.c_str(), 1);
}

void become_user(const passwd& user) {
  if (::setgroups(0, nullptr) != 0 || ::setresgid(user.pw_gid, user.pw_gid, user.pw_gid) != 0 ||
      ::setresuid(user.pw_uid, user.pw_uid, user.pw_uid) != 0)
    give_up("become", user.pw_name);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // the change of the user has cleared it
}

// The child, from fork to exec.
[[noreturn]] void become(int init, const std::string& cgroup, const Command& command, const Streams& streams) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (command.stdio != Command::kInherit) {
    ::setsid();
    bool terminal = command.stdio == Command::kTerminal;
    ::dup2(streams.child_in.get(), 0);
    ::dup2(terminal ? streams.child_in.get() : streams.child_out.get(), 1);
    ::dup2(terminal ? streams.child_in.get() : streams.child_err.get(), 2);
    if (terminal) ::ioctl(0, TIOCSCTTY, 0);
  }
  if (!join_cgroup(cgroup).ok()) give_up("join", cgroup);
  if (::setns(init, kStay) != 0) give_up("setns", cgroup);
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Looked up here: the accounts are those of the host.
  passwd* user = ::getpwnam(command.user.empty() ? "root" : command.user.c_str());
  if (user == nullptr) give_up("find user", command.user);
  set_environment(command, *user);
  std::string folder = command.cwd.empty() ? user->pw_dir : command.cwd;
  if (user->pw_uid != 0) become_user(*user);
  if (::chdir(folder.c_str()) != 0) give_up("chdir", folder);
  ::close_range(3, ~0U, 0);
  std::vector<char*> arguments;
  for (const auto& argument : command.argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  give_up("exec", command.argv[0]);
}

void set_nonblocking(const os::Fd& fd) {
  if (fd.valid()) ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

}  // namespace

base::Result<Process> start_process(pid_t init, const std::string& cgroup, Command command) {
  if (command.argv.empty()) return base::fail(base::ErrorKind::kUsage, "an empty command");
  os::Fd host(static_cast<int>(::syscall(SYS_pidfd_open, init, 0)));
  if (!host.valid()) return base::system_error("pidfd_open", std::to_string(init));
  Streams streams;
  if (command.stdio == Command::kTerminal) { TRY_ASSIGN(streams, open_terminal()); }
  if (command.stdio == Command::kPipes) { TRY_ASSIGN(streams, open_pipes(command.hold_stdin || !command.input.empty())); }

  // Only children enter a pid namespace, so this process points its children there for the length of one fork.
  os::Fd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (::setns(host.get(), CLONE_NEWPID) != 0) return base::system_error("setns", "pid namespace");
  Instant now = std::chrono::steady_clock::now();
  pid_t pid = ::fork();
  int fork_error = errno;
  if (pid == 0) become(host.get(), cgroup, command, streams);
  if (::setns(self.get(), CLONE_NEWPID) != 0) return base::system_error("setns", "own pid namespace");
  if (pid < 0) return base::system_error("fork", command.argv[0], fork_error);

  Process process;
  process.pid_ = pid;
  process.began_ = now;
  process.group_ = command.stdio != Command::kInherit;
  process.handle_ = os::Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  process.input_ = std::move(command.input);
  process.hold_stdin_ = command.hold_stdin || command.stdio == Command::kTerminal;
  process.stdin_ = std::move(streams.in);
  process.stdout_ = std::move(streams.out);
  process.stderr_ = std::move(streams.err);
  for (const os::Fd* fd : {&process.stdin_, &process.stdout_, &process.stderr_}) set_nonblocking(*fd);
  return process;
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      ended_(other.ended_),
      group_(other.group_),
      hold_stdin_(other.hold_stdin_),
      status_(other.status_),
      began_(other.began_),
      ended_at_(other.ended_at_),
      handle_(std::move(other.handle_)),
      stdin_(std::move(other.stdin_)),
      stdout_(std::move(other.stdout_)),
      stderr_(std::move(other.stderr_)),
      input_(std::move(other.input_)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)) {}

Process::~Process() {
  if (pid_ < 0 || ended_) return;
  signal_group(SIGKILL);
  signal(SIGKILL);  // it may not lead its group yet
  reap();
}

void Process::reap() {
  while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {}
  ended_ = true;
  ended_at_ = std::chrono::steady_clock::now();
}

void Process::read_all(os::Fd& fd, std::string& into) {
  char buffer[65536];
  while (fd.valid()) {
    ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n > 0) into.append(buffer, static_cast<size_t>(n));
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    if (n == 0 || errno != EAGAIN) fd.reset();  // a terminal ends with EIO
    return;
  }
}

void Process::write_input() {
  struct sigaction ignore{}, before{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before);
  ssize_t n = input_.empty() ? 0 : ::write(stdin_.get(), input_.data(), input_.size());
  ::sigaction(SIGPIPE, &before, nullptr);
  if (n > 0) input_.erase(0, static_cast<size_t>(n));
  bool broken = n < 0 && errno != EAGAIN && errno != EINTR;
  if (broken || (input_.empty() && !hold_stdin_)) stdin_.reset();
  if (broken) input_.clear();
}

bool Process::pump(milliseconds most) {
  pollfd fds[4] = {{ended_ ? -1 : handle_.get(), POLLIN, 0},
                   {stdout_.get(), POLLIN, 0},
                   {stderr_.get(), POLLIN, 0},
                   {input_.empty() && hold_stdin_ ? -1 : stdin_.get(), POLLOUT, 0}};
  int n = ::poll(fds, 4, static_cast<int>(std::max<int64_t>(0, most.count())));
  if (n <= 0) return false;
  if (fds[3].revents != 0) write_input();
  // The end is taken first and the output read after it, so nothing the process wrote is missed.
  if (fds[0].revents != 0) reap();
  read_all(stdout_, out_);
  read_all(stderr_, err_);
  return true;
}

bool Process::wait(milliseconds most) {
  Instant deadline = std::chrono::steady_clock::now() + most;
  while (!ended_) {
    auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    if (!pump(left) && left.count() <= 0) break;
  }
  return ended_;
}

bool Process::wait_output(std::string_view text, milliseconds most) {
  Instant deadline = std::chrono::steady_clock::now() + most;
  while (out_.find(text) == std::string::npos && err_.find(text) == std::string::npos) {
    auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    if (ended_ || (!pump(left) && left.count() <= 0)) return false;
  }
  return true;
}

Outcome Process::finish(milliseconds most) {
  Outcome outcome;
  outcome.ended = wait(most);
  if (!outcome.ended) {
    signal_group(SIGKILL);
    wait(std::chrono::seconds(10));
  }
  outcome.signal = WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
  outcome.exit_code = WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
  outcome.out = out_;
  outcome.err = err_;
  outcome.took = std::chrono::duration_cast<milliseconds>(ended_at_ - began_);
  return outcome;
}

void Process::signal(int signal_number) const {
  if (!ended_) ::kill(pid_, signal_number);
}

void Process::signal_group(int signal_number) const {
  if (!ended_) ::kill(group_ ? -pid_ : pid_, signal_number);
}

void Process::hang_up() {
  stdin_.reset();
  stdout_.reset();
}

void Process::type(std::string_view text) {
  input_ += text;
  if (stdin_.valid()) write_input();
}

std::ostream& operator<<(std::ostream& stream, const Outcome& outcome) {
  return stream << "exit code " << outcome.exit_code << (outcome.ended ? "" : " (killed by the testbed)") << " after "
                << outcome.took.count() << " ms\n--- stdout\n"
                << outcome.out << "\n--- stderr\n"
                << outcome.err;
}

}  // namespace phalanx::testbed
