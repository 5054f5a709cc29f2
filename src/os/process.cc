#include "os/process.h"

#include <dirent.h>
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

#include "os/fd.h"

namespace os {
namespace {

struct ChildFailure { int step; int error_number; };
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

[[noreturn]] void run_child(const SpawnSpec& spec, char* const* argv, char* const* envp, int report, pid_t parent) {
  ChildFailure failure{kFds, 0};
  sigset_t none;
  sigemptyset(&none);
  for (int s = 1; s < NSIG; ++s) ::signal(s, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (spec.death_signal != 0) {
    ::prctl(PR_SET_PDEATHSIG, spec.death_signal);
    if (::getppid() != parent) ::_exit(127);  // the parent died before prctl took hold
  }
  if (spec.nice != 0 && ::setpriority(PRIO_PROCESS, 0, spec.nice) != 0) {}
  bool good = place_fds(spec, report);
  if (good && spec.new_session) { failure.step = kSession; good = ::setsid() >= 0; }
  if (good && !spec.directory.empty()) { failure.step = kDirectory; good = ::chdir(spec.directory.c_str()) == 0; }
  if (good) { failure.step = kExec; ::execve(spec.program.c_str(), argv, envp); }
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

base::Result<pid_t> spawn(const SpawnSpec& spec) {
  CHECK(!spec.arguments.empty());
  std::vector<char*> argv = pointers(spec.arguments);
  std::vector<char*> envp = pointers(spec.environment);
  TRY_ASSIGN(PipeEnds report, make_pipe());
  pid_t parent = ::getpid();
  pid_t pid = ::fork();
  if (pid < 0) return base::system_error("fork", spec.program);
  if (pid == 0) run_child(spec, argv.data(), envp.data(), report.write.get(), parent);
  report.write.reset();
  ChildFailure failure{};
  ssize_t n;
  do n = ::read(report.read.get(), &failure, sizeof(failure));
  while (n < 0 && errno == EINTR);
  if (n == 0) return pid;
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (n != static_cast<ssize_t>(sizeof(failure))) return base::fail(base::ErrorKind::kInternal, "the child of " + spec.program + " died before exec");
  return child_error(spec, failure);
}

namespace {

// The interpreter named by "#!": its path, or empty if the file is not a script.
std::string script_interpreter(const std::string& file) {
  Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return "";
  char head[256];
  ssize_t n = ::read(fd.get(), head, sizeof(head));
  if (n < 3 || head[0] != '#' || head[1] != '!') return "";
  std::string line(head + 2, static_cast<size_t>(n) - 2);
  line = line.substr(0, line.find('\n'));
  size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_first_of(" \t", begin) - begin);
}

base::Result<std::string> check_program(const std::string& file, const std::string& on_disk) {
  if (::access(on_disk.c_str(), X_OK) != 0) return base::system_error("execute", file);
  std::string interpreter = script_interpreter(on_disk);
  if (!interpreter.empty() && interpreter[0] == '/' && ::access(interpreter.c_str(), X_OK) != 0) {
    std::string shown = interpreter.back() == '\r' ? interpreter.substr(0, interpreter.size() - 1) + "\\r" : interpreter;
    return base::fail(base::ErrorKind::kUnfit, file + " starts with '#!" + shown + "', which cannot be executed")
        .because("access " + shown + ": " + std::strerror(errno));
  }
  return file;
}

bool is_regular(const std::string& path) {
  Fd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd.valid()) return false;
  Fd directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return !directory.valid();
}

}  // namespace

base::Result<std::string> find_program(const std::string& name, const std::string& path_variable, const std::string& directory) {
  auto absolute = [&](const std::string& p) { return p.empty() || p[0] == '/' || directory.empty() ? p : directory + "/" + p; };
  if (name.empty()) return base::fail(base::ErrorKind::kUnfit, "the command is empty");
  if (name.find('/') != std::string::npos) {
    if (!is_regular(absolute(name))) return base::fail(base::ErrorKind::kUnfit, name + " is not a program").because("no such file: " + absolute(name));
    base::Result<std::string> found = check_program(name, absolute(name));
    if (!found.ok()) return std::move(found).error();
    return name;
  }
  size_t begin = 0;
  std::optional<base::Error> unusable;
  while (begin <= path_variable.size()) {
    size_t end = std::min(path_variable.find(':', begin), path_variable.size());
    std::string folder = path_variable.substr(begin, end - begin);
    std::string candidate = (folder.empty() ? std::string(".") : folder) + "/" + name;
    begin = end + 1;
    if (!is_regular(absolute(candidate))) continue;
    base::Result<std::string> found = check_program(candidate, absolute(candidate));
    if (found.ok()) return found;
    if (!unusable) unusable = std::move(found).error();
  }
  if (unusable) return *std::move(unusable);
  return base::fail(base::ErrorKind::kUnfit, "'" + name + "' was not found").because("no such program in PATH=" + path_variable);
}

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
  return std::sscanf(close + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &info.state,
                     &info.parent, &info.start) == 3;
}

}  // namespace

std::vector<ProcessInfo> descendants(pid_t ancestor) {
  std::vector<ProcessInfo> all;
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

std::string signal_name(int signal_number) {
  const char* name = ::sigabbrev_np(signal_number);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal_number);
}

}  // namespace os
