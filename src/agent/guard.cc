// The guard waits for three things: the death of the agent, the end of the lease that the agent keeps renewing with it, and signals that
// ask for an end. The first two end in the same act: every descendant is killed.
#include "agent/guard.h"

#include <signal.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "agent/agent.h"
#include "agent/guard_link.h"
#include "agent/ranks/rank_group.h"
#include "agent/scratch.h"
#include "base/counted.h"
#include "base/try.h"
#include "os/family.h"
#include "os/files.h"
#include "os/loop.h"
#include "os/process.h"
#include "wire/guard_end.h"

namespace phalanx::agent {
namespace {

// An agent that runs ends at the end of its lease by itself, and can say why. The guard comes a little later.
constexpr os::nanoseconds kAfterLease = os::milliseconds(600);

// An agent that has no lease yet has no ranks, and nothing ends it if it is stopped: it would stay for ever. It is told to go on, and sees
// by itself whether its connection has ended.
constexpr os::milliseconds kLook{2000};

// By a signal, not by a debugger.
bool is_stopped(pid_t pid) {
  base::Result<std::string> stat = os::read_file(fmt::format("/proc/{}/stat", pid), 4096);
  return stat.ok() && stat->find(") T ") != std::string::npos;
}

class Guard {
 public:
  Guard(os::Loop& loop, pid_t agent, os::Fd orders, os::Fd answers)
      : loop_(loop), agent_(agent), orders_(std::move(orders)), answers_(std::move(answers)) {}

  base::Status open();
  int stand();

 private:
  void read_orders();
  void set_timer();
  void timer_rang();
  void wake_agent();  // while it has no lease
  int end_family(const std::string& why, wire::GuardEnd end);

  os::Loop& loop_;
  pid_t agent_;  // 0: reaped, and the pid may be another process's
  os::Fd orders_, answers_, timer_;
  os::WatchId orders_watch_ = 0, timer_watch_ = 0;
  GuardOrder order_;
  std::optional<int> status_;  // of the agent, as from waitpid
  bool lease_over_ = false, was_stopped_ = false;
};

base::Status Guard::open() {
  TRY(os::set_nonblocking(orders_.get()));
  TRY(os::set_nonblocking(answers_.get()));
  TRY(loop_.on_child([this](pid_t pid, int status) {
    if (pid != agent_) return;
    agent_ = 0;
    status_ = status;
    loop_.stop();
  }));
  // Requests to end go to the agent, which ends its ranks in order; the guard only stays until it has.
  for (int s : {SIGTERM, SIGINT, SIGHUP, SIGQUIT})
    if (s != SIGTERM || !os::is_ignored(s))
      TRY(loop_.on_signal(s, [this, s](const signalfd_siginfo&) {
        if (agent_ > 0) ::kill(agent_, s);
      }));
  TRY_ASSIGN(orders_watch_, loop_.watch(orders_.get(), EPOLLIN, [this](uint32_t) { read_orders(); }));
  wake_agent();
  int status = 0;
  if (::waitpid(agent_, &status, WNOHANG) == agent_) {  // before SIGCHLD was ours to see
    agent_ = 0;
    status_ = status;
  }
  return base::ok();
}

void Guard::wake_agent() {
  loop_.every(kLook, [this] {
    const bool stopped = !timer_.valid() && agent_ > 0 && is_stopped(agent_);
    if (stopped && was_stopped_) ::kill(agent_, SIGCONT);
    was_stopped_ = stopped;
  });
}

void Guard::read_orders() {
  for (;;) {
    GuardOrder order;
    os::IoStep step = os::read_step(orders_.get(), reinterpret_cast<char*>(&order), sizeof(order));
    if (step.kind == os::IoStep::kWouldBlock) return;
    if (step.kind != os::IoStep::kBytes || step.bytes != sizeof(order)) {  // the agent is dying: its end is seen as a child's
      loop_.unwatch(orders_watch_);
      return;
    }
    bool other_clock = order.clock != order_.clock || !timer_.valid();
    order_ = order;
    order_.scratch.back() = 0;
    order_.cgroup.back() = 0;
    if (other_clock) {
      if (timer_watch_) loop_.unwatch(timer_watch_);
      timer_watch_ = 0;
      timer_ = os::Fd(::timerfd_create(order_.clock, TFD_NONBLOCK | TFD_CLOEXEC));
      base::Result<os::WatchId> watch = loop_.watch(timer_.get(), EPOLLIN, [this](uint32_t) { timer_rang(); });
      if (!watch.ok()) return loop_.stop();  // a guard that cannot watch is worse than none: the agent sees it go
      timer_watch_ = *watch;
    }
    set_timer();
    os::write_step(answers_.get(), ".", 1);
  }
}

void Guard::set_timer() {
  int64_t at = order_.end_ns + kAfterLease.count();
  itimerspec when{};
  when.it_value = {static_cast<time_t>(at / 1'000'000'000), static_cast<long>(at % 1'000'000'000)};
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void Guard::timer_rang() {
  uint64_t times = 0;
  os::read_step(timer_.get(), reinterpret_cast<char*>(&times), sizeof(times));
  GuardOrder before = order_;
  read_orders();  // what the agent has written meanwhile counts
  if (order_.end_ns > before.end_ns) return;
  lease_over_ = true;
  loop_.stop();
}

int Guard::stand() {
  if (!status_) loop_.run();
  if (lease_over_ && !status_)
    return end_family("phalanx-agent did not run for the length of its lease and was killed by phalanx-guard", wire::GuardEnd::kLeaseOver);
  if (!status_) return end_family("phalanx-guard could not watch its agent", wire::GuardEnd::kCannotWatch);
  if (WIFSIGNALED(*status_))
    return end_family("phalanx-agent was killed by " + os::signal_name(WTERMSIG(*status_)), wire::GuardEnd::kAgentKilled);
  os::kill_descendants(std::chrono::milliseconds(kKillMilliseconds));
  return WEXITSTATUS(*status_);
}

int Guard::end_family(const std::string& why, wire::GuardEnd end) {
  os::KillOutcome outcome = kill_family(order_.cgroup.data(), std::chrono::milliseconds(kKillMilliseconds));
  if (outcome.left == 0) remove_scratch(order_.scratch.data());
  int ranks = outcome.killed - (status_ ? 0 : 1);
  std::string line = base::counted("{}; its {} processes were killed", why, ranks);
  if (outcome.left > 0) line += fmt::format(", {} could not be killed", outcome.left);
  line += "\n";
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) {}
  return static_cast<int>(end);
}

int fail_start(const base::Error& error) {
  std::fputs(error.render().c_str(), stderr);
  return base::exit_code(error.kind);
}

int stand_guard(pid_t agent, os::Fd orders, os::Fd answers) {
  ::close(STDIN_FILENO);  // the stream belongs to the agent: its end must be seen when the agent ends
  ::close(STDOUT_FILENO);
  base::Result<std::unique_ptr<os::Loop>> loop = os::Loop::create();
  if (!loop.ok()) return fail_start(loop.error());
  Guard guard(**loop, agent, std::move(orders), std::move(answers));
  base::Status opened = guard.open();
  if (!opened.ok()) return fail_start(opened.error());
  return guard.stand();
}

// A deployed agent was started in the folder of its own program (hosts/connect/deploy.cc says why). It goes on where a login starts, with
// the variables that say so: the ranks inherit them, and the cache may be removed.
void leave_program_folder() {
  if (os::current_folder() + "/phalanx" != os::self_executable()) return;
  const char* home = ::getenv("HOME");
  if (!home || ::chdir(home) != 0) home = "/";
  if (::chdir(home) != 0) return;
  ::setenv("PWD", home, 1);
  ::unsetenv("OLDPWD");
}

}  // namespace

int run_guarded(char** argv, const std::string& build) {
  leave_program_folder();
  ::signal(SIGPIPE, SIG_IGN);
  base::Status reaper = os::become_subreaper();
  if (!reaper.ok()) return fail_start(reaper.error());
  base::Result<os::PipeEnds> orders = os::make_pipe(), answers = os::make_pipe();
  if (!orders.ok()) return fail_start(orders.error());
  if (!answers.ok()) return fail_start(answers.error());
  pid_t child = ::fork();
  if (child < 0) return fail_start(base::system_error("fork", "agent"));
  if (child > 0) {
    orders->write.reset();
    answers->read.reset();
    os::set_process_title(argv, "phalanx-guard", "phalanx-guard");
    return stand_guard(child, std::move(orders->read), std::move(answers->write));
  }
  orders->read.reset();
  answers->write.reset();
  os::set_process_title(argv, "phalanx-agent", "phalanx-agent");
  return run_agent(std::move(orders->write), std::move(answers->read), build);
}

}  // namespace phalanx::agent
