#include "cli/records/stop_hints.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace phalanx::cli {
namespace {

constexpr const char* kRun = "20261123-021500-beef";
constexpr const char* kWhy = "phalanx why 20261123-021500-beef";

TEST(StopHints, ThePidOfASilentLauncherIsPrintedWhileItIsTheLauncher) {
  const os::ProcessMark launcher = os::own_mark();
  const std::string pid = std::to_string(::getpid());
  EXPECT_EQ(hint_for_silent_launcher(launcher, kRun),
            "kill -KILL " + pid + " && phalanx stop " + kRun + "   # ends the launcher " + pid + ", and with it the run");
}

TEST(StopHints, NoPidThatMayBeAnotherProcess) {
  auto with = [](auto change) {
    os::ProcessMark mark = os::own_mark();
    change(mark);
    return hint_for_silent_launcher(mark, kRun);
  };
  EXPECT_EQ(with([](os::ProcessMark& m) { m.started -= 1; }), kWhy) << "the pid was given to another process";
  EXPECT_EQ(with([](os::ProcessMark& m) { m.started = 0; }), kWhy);
  EXPECT_EQ(with([](os::ProcessMark& m) { m.boot_id = "00000000-0000-0000-0000-000000000000"; }), kWhy) << "of another boot";
  EXPECT_EQ(with([](os::ProcessMark& m) { m.pid_namespace = "pid:[1]"; }), kWhy) << "of another container";
  EXPECT_EQ(hint_for_silent_launcher({}, kRun), kWhy);

  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(with([&](os::ProcessMark& m) { m.pid = child; }), kWhy) << "what is left of an ended process is none";
  ::waitpid(child, nullptr, 0);
}

TEST(StopHints, TheProcessThatCouldNotBeLookedAt) {
  EXPECT_EQ(hint_to_look("localhost", 4711), "ps -o pid,user,lstart,args -p 4711");
  EXPECT_EQ(hint_to_look("h2", 4711), "ssh h2 ps -o pid,user,lstart,args -p 4711");
  EXPECT_EQ(hint_to_look("h2", 0), "ssh h2 ps -eo pid,user,lstart,args");
}

}  // namespace
}  // namespace phalanx::cli
