// What a launcher costs by the number of its hosts, held against bounds: the real launcher, with the limit of 1024 descriptors that a
// login has, on hosts that this process plays (bench/scale_agents.h). `./x bench scale` measures the same on 1,024 hosts.
//
// Bytes and memory do not depend on how busy the machine is, and their bounds are close. Bounds on times are not: they find what
// grows with the square of the hosts, which cost ten times as much.
#include <gtest/gtest.h>

#include "scale_trial.h"
#include "scratch.h"

namespace phalanx::scale {
namespace {

constexpr int kFew = 32, kMany = 128;

Wish wish(const std::string& folder, int hosts, Ending ending) {
  Wish w{PHALANX_PROGRAM, SCALE_SSH, folder, hosts, 8, ending, os::milliseconds(300)};
  return w;
}

TEST(Scale, AHostCostsTheSameAmongManyHosts) {
  base::Status limits = set_limits(kMany);
  if (!limits.ok()) GTEST_SKIP() << limits.error().message;
  std::string folder = scratch::folder("scale");
  base::Result<Trial> few = run_trial(wish(folder, kFew, Ending::kFailure));
  ASSERT_TRUE(few.ok()) << few.error().render();
  base::Result<Trial> many = run_trial(wish(folder, kMany, Ending::kFailure));
  ASSERT_TRUE(many.ok()) << many.error().render();
  base::Result<Trial> stopped = run_trial(wish(folder, kMany, Ending::kOperator));
  ASSERT_TRUE(stopped.ok()) << stopped.error().render();

  EXPECT_EQ(many->exit_code, 1) << many->said;
  EXPECT_NE(many->said.find("rank 512"), std::string::npos) << many->said;
  EXPECT_LT(many->start_bytes, 1.1 * few->start_bytes) << "bytes sent to a host";
  EXPECT_LT(many->start_bytes, 8'000);
  EXPECT_LT(many->bytes, 9'000);
  EXPECT_LT(many->peak_bytes, 10'000'000 + int64_t{kMany} * 150'000) << "memory of the whole launcher";
  EXPECT_LT(many->ended, 2.0) << "from the failure to the exit";
  EXPECT_LT(stopped->ended, 2.0) << "from SIGINT to the exit";
  EXPECT_LT(many->cpu_start / kMany, 2 * few->cpu_start / kFew) << "processor time of a host until its ranks started";
}

}  // namespace
}  // namespace phalanx::scale
