#include "machine/ranks/run_processes.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "machine/ranks/process_table.h"
#include "os/process.h"

namespace phalanx::machine {
namespace {

constexpr const char* kId = "20261121-073102-a3f9";

pid_t sleeper(const std::string& variable) {
  os::SpawnSpec spec;
  spec.program = "/bin/sleep";
  spec.arguments = {"sleep", "1000"};
  spec.environment = {variable, "PATH=/bin"};
  auto pid = os::spawn(spec);
  EXPECT_TRUE(pid.ok());
  return pid.ok() ? *pid : -1;
}

TEST(RunProcesses, AreKnownByTheRunsId) {
  pid_t ours = sleeper("PHALANX_RUN_ID=" + std::string(kId));
  pid_t other = sleeper("PHALANX_RUN_ID=" + std::string(kId) + "0");
  pid_t none = sleeper("X_PHALANX_RUN_ID=" + std::string(kId));
  RunLook look = run_processes("", kId, {}, os::milliseconds(5000));
  const std::vector<RunProcess>& found = look.found;
  EXPECT_TRUE(look.unseen.empty()) << "nothing was left by an agent: what cannot be read is not asked about";
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, ours);
  EXPECT_EQ(found[0].command, "sleep 1000");
  for (pid_t pid : {ours, other, none}) ::kill(pid, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(ours), &ended, WEXITED | WNOWAIT), 0);  // it is a zombie from here on
  EXPECT_TRUE(run_processes("", kId, {}, os::milliseconds(5000)).found.empty()) << "a zombie is no process";
  for (pid_t pid : {ours, other, none}) ::waitpid(pid, nullptr, 0);
}

// A process that has lost its parent and overwrites its environment, as setproctitle does, and then waits. -1: init does not adopt it here.
pid_t overwriter() {
  int ready[2];
  if (::pipe(ready) != 0) return -1;
  pid_t parent = ::fork();
  if (parent == 0) {
    if (::fork() != 0) ::_exit(0);
    ::setsid();
    for (int i = 0; ::getppid() != 1; ++i) {
      if (i == 1000) ::_exit(1);
      ::usleep(1000);
    }
    char* begin = environ[0];
    char* end = begin;
    for (char** e = environ; *e; ++e)
      if (*e == end) end += std::strlen(*e) + 1;
    std::memset(begin, 0, static_cast<size_t>(end - begin));
    pid_t self = ::getpid();
    if (::write(ready[1], &self, sizeof(self)) != sizeof(self)) ::_exit(1);
    for (;;) ::pause();
  }
  ::waitpid(parent, nullptr, 0);
  pid_t pid = -1;
  pollfd readable{ready[0], POLLIN, 0};
  if (::poll(&readable, 1, 3000) == 1 && ::read(ready[0], &pid, sizeof(pid)) != sizeof(pid)) pid = -1;
  for (int fd : ready) ::close(fd);
  return pid;
}

int64_t start_of(pid_t pid) {
  ProcessStat stat;
  return read_stat("", pid, stat) ? stat.start_ticks : 0;
}

TEST(RunProcesses, OneThatHasOverwrittenItsEnvironmentIsFoundByWhatItsAgentWroteDown) {
  pid_t ours = overwriter();
  if (ours < 0) GTEST_SKIP() << "needs an init that adopts orphans; here another reaper does";
  RunEvidence evidence;
  evidence.since_ticks = start_of(::getpid());
  evidence.family = {{ours, start_of(ours)}};
  RunLook look = run_processes("", kId, evidence, os::milliseconds(5000));
  ASSERT_EQ(look.found.size(), 1u);
  EXPECT_EQ(look.found[0].pid, ours);
  evidence.family = {{ours, start_of(ours) - 1}};  // that pid belonged to another one then
  look = run_processes("", kId, evidence, os::milliseconds(5000));
  EXPECT_TRUE(look.found.empty());
  ::kill(ours, SIGKILL);
}

TEST(RunProcesses, OneThatNobodyKnowsAndThatCannotBeReadIsNeverCalledAbsent) {
  pid_t silent = overwriter();
  if (silent < 0) GTEST_SKIP() << "needs an init that adopts orphans; here another reaper does";
  RunEvidence evidence;
  evidence.since_ticks = start_of(::getpid());
  RunLook look = run_processes("", kId, evidence, os::milliseconds(5000));
  EXPECT_TRUE(look.found.empty());
  auto named = [&] { return std::any_of(look.unseen.begin(), look.unseen.end(), [&](const Unseen& what) { return what.pid == silent; }); };
  EXPECT_TRUE(named());
  evidence.since_ticks = start_of(silent) + 1;  // it was there before the agent
  look = run_processes("", kId, evidence, os::milliseconds(5000));
  EXPECT_FALSE(named());
  ::kill(silent, SIGKILL);
}

// Who has changed the user is not dumpable: neither is a program with file capabilities, or ssh-agent. In a process of its own.
TEST(RunProcesses, OneThatMayNotBeReadIsNeverCalledAbsent) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
    pid_t hidden = overwriter();
    if (hidden < 0) ::_exit(77);
    RunEvidence evidence;
    evidence.since_ticks = start_of(hidden);
    RunLook look = run_processes("", kId, evidence, os::milliseconds(5000));
    bool named = std::any_of(look.unseen.begin(), look.unseen.end(), [&](const Unseen& what) {
      return what.pid == hidden && what.text.find("its environment cannot be read") != std::string::npos;
    });
    ::kill(hidden, SIGKILL);
    ::_exit(named && look.found.empty() ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs an init that adopts orphans; here another reaper does";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(RunProcesses, ALookThatIsNotFinishedSaysSo) {
  RunLook look = run_processes("", kId, {}, os::milliseconds(-1));
  ASSERT_EQ(look.unseen.size(), 1u);
  EXPECT_NE(look.unseen[0].text.find("was not finished"), std::string::npos);
}

TEST(RunProcesses, AFolderWithoutProcessesProvesNothing) {
  RunLook look = run_processes("/nonexistent", kId, {}, os::milliseconds(1000));
  EXPECT_TRUE(look.found.empty());
  ASSERT_EQ(look.unseen.size(), 1u);
}

TEST(RunProcesses, TheLoginOfAProcess) {
  EXPECT_EQ(login_cgroup("0::/user.slice/user-1000.slice/session-12.scope\n"), "/user.slice/user-1000.slice/session-12.scope");
  EXPECT_EQ(login_cgroup("5:memory:/x\n1:name=systemd:/user.slice/user-0.slice/session-c3.scope\n"),
            "/user.slice/user-0.slice/session-c3.scope");
  EXPECT_EQ(login_cgroup("0::/system.slice/sshd.service\n"), "");
}

}  // namespace
}  // namespace phalanx::machine
