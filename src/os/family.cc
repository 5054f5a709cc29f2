#include "os/family.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "os/fd.h"

namespace phalanx::os {
namespace {

bool read_stat(pid_t pid, ProcessInfo& info) {
  char path[32];
  std::snprintf(path, sizeof(path), "/proc/%d/stat", pid);
  Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return false;
  char text[1024];
  ssize_t n = ::read(fd.get(), text, sizeof(text) - 1);
  if (n <= 0) return false;
  text[n] = 0;
  char* open = std::strchr(text, '(');
  char* close = std::strrchr(text, ')');  // comm may hold anything, ')' included
  if (!open || !close || close < open) return false;
  info.pid = pid;
  info.command.assign(open + 1, close);
  return std::sscanf(close + 1, " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &info.state, &info.parent,
                     &info.group, &info.start) == 4;
}

// Who has no child has no descendant. Exact, and cheap where /proc has thousands of entries.
bool childless() {
  siginfo_t info;
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 && errno == ECHILD;
}

}  // namespace

bool in_own_pid_namespace() {
  char target[64] = "";
  // PROC_PID_INIT_INO of include/linux/proc_ns.h
  return ::readlink("/proc/self/ns/pid", target, sizeof(target) - 1) > 0 && std::string_view(target) != "pid:[4026531836]";
}

std::vector<ProcessInfo> descendants(pid_t ancestor, std::string* unseen) {
  std::vector<ProcessInfo> all;
  const bool own = ancestor == ::getpid();
  if (own && childless()) return all;
  DIR* proc = ::opendir("/proc");
  if (!proc) {
    if (unseen) *unseen = fmt::format("/proc cannot be read: {}", std::strerror(errno));
    return all;
  }
  while (dirent* entry = ::readdir(proc)) {
    pid_t pid = std::atoi(entry->d_name);
    ProcessInfo info;
    if (pid > 0 && read_stat(pid, info)) all.push_back(std::move(info));
  }
  ::closedir(proc);
  std::vector<pid_t> family{ancestor};
  std::vector<ProcessInfo> out;
  for (size_t i = 0; i < family.size(); ++i)
    for (const ProcessInfo& p : all)
      if (p.parent == family[i] && p.pid != ancestor) {
        family.push_back(p.pid);
        out.push_back(p);
      }
  // It may just have ended and been reaped. What is still there has another owner, and /proc is mounted with hidepid.
  if (own && unseen && out.empty() && !childless()) *unseen = "a child process is missing from /proc";
  return out;
}

// The descriptor is of the process that had the pid when it was opened; if that one was started then, a signal can reach no other.
bool signal_process(pid_t pid, unsigned long long start, int signal_number) {
  if (pid <= 1) return false;
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const bool before_5_3 = !process.valid() && errno == ENOSYS;
  if (!process.valid() && !before_5_3) return false;
  ProcessInfo info;
  if (!read_stat(pid, info) || info.start != start) return false;
  if (before_5_3) return ::kill(pid, signal_number) == 0;
  return ::syscall(SYS_pidfd_send_signal, process.get(), signal_number, nullptr, 0) == 0;
}

namespace {

std::chrono::milliseconds monotonic() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::milliseconds(now.tv_sec * 1000 + now.tv_nsec / 1'000'000);
}

}  // namespace

KillOutcome kill_descendants(std::chrono::milliseconds most) {
  KillOutcome outcome;
  std::set<std::pair<pid_t, unsigned long long>> seen;
  const std::chrono::milliseconds start = monotonic();
  int rounds_with_new = 0;
  for (int round = 0;; ++round) {
    int alive = 0, fresh = 0;
    outcome.unseen.clear();
    std::vector<ProcessInfo> family = descendants(::getpid(), &outcome.unseen);
    std::erase_if(family, [](const ProcessInfo& p) { return p.state == 'Z' || p.state == 'X'; });
    for (const ProcessInfo& p : family) fresh += seen.insert({p.pid, p.start}).second;
    if (fresh > 0) ++rounds_with_new;
    const bool passed = monotonic() - start > most;
    // The first round is the whole family; new ones in the second had been forked meanwhile. In the fourth, something forks faster than we
    // look.
    const bool stop_first = rounds_with_new > 3 && fresh > 0 && monotonic() - start < most / 2;
    for (const ProcessInfo& p : family) {
      ++alive;
      signal_process(p.pid, p.start, stop_first ? SIGSTOP : SIGKILL);
    }
    int status;
    while (::waitpid(-1, &status, WNOHANG) > 0) {}
    if ((alive == 0 && outcome.unseen.empty()) || passed) {
      outcome.killed = static_cast<int>(seen.size());
      outcome.left = std::max(alive, outcome.unseen.empty() ? 0 : 1);
      return outcome;
    }
    if (stop_first) continue;
    timespec pause{0, round < 20 ? 2'000'000 : 20'000'000};  // the kernel needs a moment to end them; there is no event to wait for
    ::nanosleep(&pause, nullptr);
  }
}

base::Status become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return base::system_error("prctl PR_SET_CHILD_SUBREAPER", "");
  return base::ok();
}

}  // namespace phalanx::os
