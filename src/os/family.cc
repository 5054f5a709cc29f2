#include "os/family.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "os/fd.h"

namespace os {
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

std::vector<ProcessInfo> descendants(pid_t ancestor) {
  std::vector<ProcessInfo> all;
  if (ancestor == ::getpid() && childless()) return all;
  DIR* proc = ::opendir("/proc");
  if (!proc) return all;
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
  return out;
}

KillOutcome kill_descendants(std::chrono::milliseconds most) {
  KillOutcome outcome;
  std::vector<std::pair<pid_t, unsigned long long>> seen;
  timespec start{};
  ::clock_gettime(CLOCK_MONOTONIC, &start);
  for (int round = 0;; ++round) {
    int alive = 0;
    for (const ProcessInfo& p : descendants(::getpid())) {
      if (p.state == 'Z' || p.state == 'X') continue;
      ++alive;
      ::kill(p.pid, SIGKILL);
      std::pair<pid_t, unsigned long long> name{p.pid, p.start};
      if (std::find(seen.begin(), seen.end(), name) == seen.end()) seen.push_back(name);
    }
    int status;
    while (::waitpid(-1, &status, WNOHANG) > 0) {}
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    auto passed = std::chrono::milliseconds((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1'000'000);
    if (alive == 0 || passed > most) {
      outcome.killed = static_cast<int>(seen.size());
      outcome.left = alive;
      return outcome;
    }
    timespec pause{0, round < 20 ? 2'000'000 : 20'000'000};  // the kernel needs a moment to end them; there is no event to wait for
    ::nanosleep(&pause, nullptr);
  }
}

base::Status become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return base::system_error("prctl PR_SET_CHILD_SUBREAPER", "");
  return base::ok();
}

}  // namespace os
