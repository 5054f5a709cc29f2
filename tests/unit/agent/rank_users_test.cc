#include "agent/ranks/rank_users.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace phalanx::agent {
namespace {

constexpr uid_t kOther = 61'202;

TEST(RankUsers, AreTheUsersOfTheProcessesBelowThisOne) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to start a command as a second user";
  RankUsers before;
  EXPECT_FALSE(before.runs_as(kOther));
  pid_t rank = ::fork();
  if (rank == 0) {
    if (::setresuid(kOther, kOther, kOther) != 0) ::_exit(1);
    ::execl("/bin/sleep", "sleep", "60", nullptr);
    ::_exit(2);
  }
  // Until it has become the other user and has called exec.
  bool seen = false;
  for (os::Mono begin = os::mono_now(); !seen && os::mono_now() - begin < os::milliseconds(5000);) seen = RankUsers().runs_as(kOther);
  EXPECT_TRUE(seen);
  EXPECT_FALSE(RankUsers().runs_as(kOther + 1));
  ::kill(rank, SIGKILL);
  ::waitpid(rank, nullptr, 0);
  RankUsers after;
  EXPECT_FALSE(after.runs_as(kOther));
}

}  // namespace
}  // namespace phalanx::agent
