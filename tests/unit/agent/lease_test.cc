#include "agent/lease.h"

#include <gtest/gtest.h>

namespace phalanx::agent {
namespace {

using os::milliseconds;
using os::Mono;

constexpr milliseconds kLength{6000};
constexpr int64_t kSkew = 7'000'000'000'000;  // the launcher's clock shows so much more
constexpr milliseconds kTrip{3};

Mono at(int64_t ms) { return Mono{1'000'000'000'000} + milliseconds(ms); }
int64_t sent(int64_t ms) { return at(ms).ns + kSkew; }

// Runs without a break from 0 to `ms`, with a ping every second.
Lease lease_at(int64_t ms) {
  Lease lease;
  lease.begin(kLength, at(0));
  for (int64_t t = 0; t <= ms; t += 250) {
    if (t % 1000 == 0) lease.heard(sent(t), at(t) + kTrip);
    lease.ran(at(t) + kTrip);
  }
  return lease;
}

TEST(Lease, EndsItsLengthAfterTheLastPing) {
  Lease lease = lease_at(10'000);
  EXPECT_FALSE(lease.over(at(16'000) + kTrip));
  EXPECT_TRUE(lease.over(at(16'001) + kTrip));
}

TEST(Lease, BeforeItBeginsItNeverEnds) {
  Lease lease;
  lease.heard(sent(0), at(0));
  EXPECT_FALSE(lease.over(at(3'600'000)));
}

TEST(Lease, PingsThatWaitedWhileTheAgentWasStoppedRenewNothing) {
  Lease lease = lease_at(10'000);
  for (int64_t t = 11'000; t <= 15'000; t += 1000) lease.heard(sent(t), at(70'000));  // the launcher gave the host up at 15 s
  EXPECT_TRUE(lease.over(at(70'000)));
  EXPECT_EQ(lease.end(), at(21'000) + kTrip);
}

TEST(Lease, ANewerPingSavesAnAgentThatWasStopped) {
  Lease lease = lease_at(10'000);
  for (int64_t t = 11'000; t <= 70'000; t += 1000) lease.heard(sent(t), at(70'010));
  EXPECT_FALSE(lease.over(at(70'010)));
  EXPECT_EQ(lease.end(), at(76'000) + kTrip);
}

// Its clock has lost ten seconds; the lease is shorter for a few pings, and then as it was.
TEST(Lease, ALauncherThatWasSuspendedIsTrustedAgain) {
  Lease lease = lease_at(10'000);
  int64_t now = 10'000;
  auto run = [&](int64_t until, bool pings) {
    for (; now <= until; now += 250) {
      if (pings && now % 1000 == 0) lease.heard(sent(now - 5000), at(now) + kTrip);
      ASSERT_FALSE(lease.over(at(now)));
      lease.ran(at(now));
    }
  };
  run(15'000, false);
  run(60'000, true);
  EXPECT_EQ(lease.end(), at(66'000) + kTrip);
}

TEST(Lease, AnotherClockForTheSameLease) {
  Lease lease = lease_at(10'000);
  os::nanoseconds shift = milliseconds(-500'000);
  lease.begin(kLength, at(10'010) + shift, shift);
  lease.heard(sent(11'000), at(11'000) + kTrip + shift);
  EXPECT_EQ(lease.end(), at(17'000) + kTrip + shift);
}

}  // namespace
}  // namespace phalanx::agent
