#include "start_trial.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "os/fd.h"
#include "os/files.h"
#include "os/process.h"
#include "os/program.h"

namespace phalanx::bench {
namespace {

constexpr std::string_view kMark = "start-rank ";
constexpr os::milliseconds kPatience{120'000};

// The commands of one launch, their joint stdout and stderr.
class Family {
 public:
  ~Family() {
    for (const Child& child : children_) ::kill(-child.pid, SIGKILL);  // each leads its own group
    while (!children_.empty() && reap(true)) {}
  }

  // Starts all and waits for all.
  base::Status run(const Launch& launch);

  os::Mono started, ended;
  std::vector<os::Mono> seen;  // when each rank's line came
  os::Mono last_exit;          // of all ranks, as they said themselves

 private:
  struct Child {
    pid_t pid;
    os::Fd handle;
  };
  base::Status start(const Launch& launch);
  bool wait(os::Mono deadline);  // for output or an end. False: nothing until the deadline
  bool reap(bool block);
  void read_out();
  void read_err();

  std::vector<Child> children_;
  os::Fd out_, err_;
  bool out_open_ = true;
  std::string unfinished_, talk_;
  std::string failed_;
};

base::Status Family::start(const Launch& launch) {
  TRY_ASSIGN(os::PipeEnds out, os::make_pipe());
  TRY_ASSIGN(os::PipeEnds err, os::make_pipe());
  os::SpawnSpec spec;
  for (char** e = environ; *e; ++e) spec.environment.push_back(*e);
  spec.environment.insert(spec.environment.end(), launch.environment.begin(), launch.environment.end());
  spec.fds = {{out.write.get(), 1}, {err.write.get(), 2}};
  std::string path = os::environment_value("PATH", "/usr/bin:/bin");
  TRY_ASSIGN(spec.program, os::find_program(launch.commands.at(0).at(0), path, ""));
  started = os::mono_now();
  for (const Words& command : launch.commands) {
    spec.arguments = command;
    TRY_ASSIGN(pid_t pid, os::spawn(spec));
    children_.push_back({pid, os::Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)))});
  }
  out_ = std::move(out.read);
  err_ = std::move(err.read);
  TRY(os::set_nonblocking(out_.get()));
  return os::set_nonblocking(err_.get());
}

void Family::read_out() {
  char buffer[65536];
  os::IoStep step = os::read_step(out_.get(), buffer, sizeof(buffer));
  if (step.kind == os::IoStep::kWouldBlock) return;
  if (step.kind != os::IoStep::kBytes) {
    out_open_ = false;
    return;
  }
  os::Mono now = os::mono_now();
  unfinished_.append(buffer, step.bytes);
  for (size_t end; (end = unfinished_.find('\n')) != std::string::npos; unfinished_.erase(0, end + 1)) {
    std::string line = unfinished_.substr(0, end);
    size_t mark = line.find(kMark);
    if (mark == std::string::npos) {
      talk_ += line + "\n";
      continue;
    }
    seen.push_back(now);
    last_exit = std::max(last_exit, os::Mono{std::strtoll(line.c_str() + mark + kMark.size(), nullptr, 10)});
  }
}

void Family::read_err() {
  char buffer[4096];
  for (os::IoStep step; (step = os::read_step(err_.get(), buffer, sizeof(buffer))).kind == os::IoStep::kBytes;)
    talk_.append(buffer, step.bytes);
}

bool Family::reap(bool block) {
  int status = 0;
  pid_t pid = ::waitpid(-1, &status, block ? 0 : WNOHANG);
  if (pid <= 0) return false;
  std::erase_if(children_, [&](const Child& child) { return child.pid == pid; });
  if (status != 0 && failed_.empty())
    failed_ = WIFSIGNALED(status) ? os::signal_name(WTERMSIG(status)) : fmt::format("exit code {}", WEXITSTATUS(status));
  return true;
}

bool Family::wait(os::Mono deadline) {
  std::vector<pollfd> fds = {{out_open_ ? out_.get() : -1, POLLIN, 0}, {err_.get(), POLLIN, 0}};
  for (const Child& child : children_) fds.push_back({child.handle.get(), POLLIN, 0});
  int64_t left_ms = (deadline - os::mono_now()).count() / 1'000'000;
  if (left_ms <= 0 || ::poll(fds.data(), fds.size(), static_cast<int>(left_ms)) <= 0) return false;
  os::Mono now = os::mono_now();
  if (fds[0].revents) read_out();
  if (fds[1].revents) read_err();
  size_t before = children_.size();
  while (reap(false)) {}
  if (children_.empty() && before > 0) {
    ended = now;
    while (out_open_ && ::poll(fds.data(), 1, 0) > 0) read_out();
    out_open_ = false;  // a shared connection may hold the pipe open: what the commands had to say has been read
  }
  return true;
}

base::Status Family::run(const Launch& launch) {
  TRY(start(launch));
  os::Mono deadline = started + kPatience;
  while (!children_.empty() || out_open_)
    if (!wait(deadline)) return base::fail(base::ErrorKind::kTimeout, "not over after two minutes");
  if (failed_.empty()) return base::ok();
  return base::fail(base::ErrorKind::kJobFailed, failed_).because(talk_.substr(talk_.size() - std::min<size_t>(talk_.size(), 500)));
}

}  // namespace

base::Result<Trial> run_trial(const Launch& launch, int ranks) {
  Family family;
  TRY(family.run(launch));
  if (family.seen.size() != static_cast<size_t>(ranks))
    return base::fail(base::ErrorKind::kJobFailed, fmt::format("{} of {} ranks were seen", family.seen.size(), ranks));
  Trial trial;
  trial.first = family.seen.front() - family.started;
  trial.last = family.seen.back() - family.started;
  trial.prompt = family.ended - family.last_exit;
  trial.whole = family.ended - family.started;
  return trial;
}

base::Status run_quietly(const Launch& launch) { return Family().run(launch); }

ProcessorTime processor_time() {
  std::string mount, group;
  std::ifstream mounts("/proc/self/mounts"), groups("/proc/self/cgroup");
  for (std::string line; std::getline(mounts, line);) {
    std::vector<std::string_view> fields = base::split_words(line);
    if (fields.size() > 2 && fields[2] == "cgroup2") mount = fields[1];
  }
  for (std::string line; std::getline(groups, line);)
    if (line.starts_with("0::")) group = line.substr(3);
  auto seconds = [&](const std::string& folder) {
    std::ifstream stat(mount + folder + "/cpu.stat");
    std::string name;
    double microseconds = 0;
    if (!(stat >> name >> microseconds) || name != "usage_usec") return 0.0;
    return microseconds / 1e6;
  };
  if (group.find("phalanx-testbed") == std::string::npos) return {};
  return {seconds(group), seconds(group.substr(0, group.rfind('/')))};
}

}  // namespace phalanx::bench
