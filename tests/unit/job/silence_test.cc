// Who is silent while the launcher itself hardly runs.
#include <gtest/gtest.h>

#include "script.h"

namespace phalanx::job::test {
namespace {

using os::milliseconds;

// On a busy machine the launcher stalls, is woken, and stalls again before an answer to its ping can have come.
TEST(Silence, SeveralShortStallsOfTheLauncherAreNoSilenceOfAHost) {
  Script s({1, 1});
  s.run_all();
  s.pass(milliseconds(2000));
  s.pass(milliseconds(800), {0, 1});
  for (int i = 0; i < 2; ++i) {
    s.now = s.now + milliseconds(2400);
    s.feed(Tick{});
  }
  EXPECT_EQ(s.state.phase, Phase::kRunning) << "5.6 s without a word, 4.8 s of them not at work";
  s.pass(milliseconds(400));
  s.pass(kHostPatience + milliseconds(200), {1});
  EXPECT_EQ(s.state.phase, Phase::kStopping) << "a host that is silent while the launcher works is lost after 5 s";
  EXPECT_EQ(s.state.lost_host, 1u);
}

// A launcher that hardly runs still notices in the end.
TEST(Silence, AMachineThatIsAlwaysBusyLosesADeadHostLater) {
  Script s({1, 1});
  s.run_all();
  const os::Mono begin = s.now;
  while (s.state.phase == Phase::kRunning && s.now - begin < milliseconds(60'000)) {
    s.now = s.now + milliseconds(2400);
    s.say(0, wire::Pong{s.state.hosts[0].nonce, s.now.ns + s.offset(0)});
    s.feed(Tick{});
  }
  EXPECT_EQ(s.state.lost_host, 1u);
  EXPECT_LT((s.now - begin).count(), os::nanoseconds(milliseconds(20'000)).count());
}

}  // namespace
}  // namespace phalanx::job::test
