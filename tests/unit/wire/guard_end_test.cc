#include "wire/guard_end.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace phalanx::wire {
namespace {

TEST(GuardEnd, IsReadFromTheExitCodeAndFromNothingElse) {
  EXPECT_EQ(guard_end(111 << 8), GuardEnd::kAgentKilled);
  EXPECT_EQ(guard_end(112 << 8), GuardEnd::kLeaseOver);
  EXPECT_EQ(guard_end(113 << 8), GuardEnd::kCannotWatch);
  for (int code = 0; code < 256; ++code) EXPECT_EQ(guard_end(code << 8).has_value(), code >= 111 && code <= 113) << code;
  EXPECT_EQ(guard_end(SIGKILL), std::nullopt) << "the transport itself was killed";
}

}  // namespace
}  // namespace phalanx::wire
