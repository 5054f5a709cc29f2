#include "os/guarded.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/text.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/files.h"
#include "os/process.h"

namespace os {
namespace {

constexpr size_t kMostBytes = 16 << 20;

struct Child {
  pid_t pid = 0;
  Fd pipe;
  std::string answer;
  bool closed = false;
};

// A child in state D outlives us. It must not hold what others wait to see closed: the pipe of a guarded call that this one is
// nested in, or the terminal or ssh channel of the agent. So it keeps nothing but its own pipe, as descriptor 3.
void keep_only(int out) {
  int null = ::open("/dev/null", O_RDWR);
  for (int standard : {0, 1, 2})
    if (null >= 0 && null != standard) ::dup2(null, standard);
  constexpr int kOut = 3;
  if (out != kOut) ::dup2(out, kOut);
  if (::close_range(kOut + 1, ~0U, 0) == 0) return;
  for (int fd = kOut + 1; fd < 4096; ++fd) ::close(fd);  // Linux before 5.9
}

[[noreturn]] void run_child(const Guarded& call, int out, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  keep_only(out);
  out = 3;
  for (int s : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGCHLD, SIGPIPE}) ::signal(s, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::string answer = call.call();
  bool written = write_all(out, answer, "the pipe of a guarded call").ok();
  ::_exit(written ? 0 : 1);
}

base::Result<Child> start(const Guarded& call) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::system_error("pipe2", call.name);
  Child child;
  child.pipe = Fd(ends[0]);
  Fd out(ends[1]);
  pid_t self = ::getpid();
  child.pid = ::fork();
  if (child.pid < 0) return base::system_error("fork", call.name);
  if (child.pid == 0) run_child(call, out.get(), self);
  return child;
}

void read_some(Child& child) {
  char buffer[64 << 10];
  ssize_t got = ::read(child.pipe.get(), buffer, sizeof(buffer));
  if (got < 0 && errno == EINTR) return;
  if (got <= 0 || child.answer.size() + static_cast<size_t>(got) > kMostBytes) {
    child.closed = true;
    return;
  }
  child.answer.append(buffer, static_cast<size_t>(got));
}

// Reads from all until each has closed its end or the time is over.
void collect(std::vector<Child*>& open, Mono end) {
  while (!open.empty()) {
    std::vector<pollfd> polls;
    for (Child* child : open) polls.push_back({child->pipe.get(), POLLIN, 0});
    auto left = std::chrono::duration_cast<milliseconds>(end - mono_now()).count();
    if (left <= 0) return;
    int ready = ::poll(polls.data(), polls.size(), static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return;
    if (ready <= 0) continue;
    for (size_t i = 0; i < polls.size(); ++i)
      if (polls[i].revents) read_some(*open[i]);
    std::erase_if(open, [](Child* child) { return child->closed; });
  }
}

base::Result<std::string> outcome(const Guarded& call, Child& child, milliseconds deadline) {
  if (!child.closed) {
    base::Error error =
        base::fail(base::ErrorKind::kTimeout,
                   fmt::format("no answer for {:.1f} s{}", static_cast<double>(deadline.count()) / 1000, stuck_in(child.pid)));
    ::kill(child.pid, SIGKILL);
    ::waitpid(child.pid, nullptr, WNOHANG);
    return error;
  }
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {}
  if (WIFSIGNALED(status)) return base::fail(base::ErrorKind::kInternal, call.name + ": killed by " + signal_name(WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) return base::fail(base::ErrorKind::kInternal, call.name + ": its answer could not be sent");
  return std::move(child.answer);
}

}  // namespace

std::string stuck_in(pid_t pid) {
  std::string folder = fmt::format("/proc/{}", pid);
  base::Result<std::string> stat = read_file(folder + "/stat", 4096);
  if (!stat.ok()) return "";
  size_t close = stat->rfind(')');
  if (close == std::string::npos || close + 2 >= stat->size()) return "";
  base::Result<std::string> where = read_file(folder + "/wchan", 256);
  std::string text = fmt::format("; its process is in state {}", (*stat)[close + 2]);
  return where.ok() && !where->empty() && *where != "0" ? text + ", waiting in " + *where : text;
}

std::vector<base::Result<std::string>> run_guarded(const std::vector<Guarded>& calls, milliseconds deadline) {
  Mono end = mono_now() + deadline;
  std::vector<base::Result<Child>> children;
  children.reserve(calls.size());
  for (const Guarded& call : calls) children.push_back(start(call));
  std::vector<Child*> open;
  for (base::Result<Child>& child : children)
    if (child.ok()) open.push_back(&child.value());
  collect(open, end);
  std::vector<base::Result<std::string>> results;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (children[i].ok()) results.push_back(outcome(calls[i], children[i].value(), deadline));
    else results.push_back(children[i].error());
  }
  return results;
}

}  // namespace os
