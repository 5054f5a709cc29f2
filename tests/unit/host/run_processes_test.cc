#include "host/run_processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "os/process.h"

namespace host {
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
  std::vector<RunProcess> found = run_processes("", kId, os::milliseconds(5000));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, ours);
  EXPECT_EQ(found[0].command, "sleep 1000");
  for (pid_t pid : {ours, other, none}) ::kill(pid, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(ours), &ended, WEXITED | WNOWAIT), 0);  // it is a zombie from here on
  EXPECT_TRUE(run_processes("", kId, os::milliseconds(5000)).empty()) << "a zombie is no process";
  for (pid_t pid : {ours, other, none}) ::waitpid(pid, nullptr, 0);
}

}  // namespace
}  // namespace host
