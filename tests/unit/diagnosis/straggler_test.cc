#include "diagnosis/hang/straggler.h"

#include <gtest/gtest.h>

#include "codes/code.h"

using namespace phalanx;

namespace {

using diagnosis::Diagnosis;
using diagnosis::Stragglers;

wire::Pulse pulse(std::vector<wire::RankPulse> ranks, uint32_t stolen = 0) { return {0, 5000, std::move(ranks), {}, stolen}; }
const std::map<int, size_t> kRanks = {{0, 0}, {1, 0}, {2, 1}};

TEST(Straggler, TheOneThatComputesWhileOthersWaitIsToldOnce) {
  Stragglers s;
  for (int i = 0; i < diagnosis::kSlowWindows; ++i) {
    EXPECT_TRUE(s.look(kRanks).empty()) << i;
    s.take(0, pulse({{0, 500, 0, 0, 'S', 1}, {1, 4900, 0, 0, 'R', 1}}));
    s.take(1, pulse({{2, 600, 0, 0, 'S', 1}}));
  }
  std::vector<Diagnosis> told = s.look(kRanks);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].code, "SLOW-RANK");
  EXPECT_EQ(told[0].ranks, std::vector<int>{1});
  EXPECT_TRUE(codes::find(told[0].code));
  EXPECT_TRUE(s.look(kRanks).empty());
}

TEST(Straggler, AllBusyOrAMomentIsNothing) {
  Stragglers s;
  for (int i = 0; i < diagnosis::kSlowWindows; ++i) {
    s.take(0, pulse({{0, 5000, 0, 0, 'R', 1}, {1, 5000, 0, 0, 'R', 1}, {2, i == 2 ? 5000u : 100u, 0, 0, 'R', 1}}));
    EXPECT_TRUE(s.look(kRanks).empty());
  }
}

TEST(Straggler, TheCpuLimitIsTold) {
  Stragglers s;
  for (int i = 0; i < diagnosis::kSlowWindows; ++i)
    s.take(0, pulse({{0, 900, 0, 0, 'S', 1}, {1, 900, 3000, 0, 'R', 1}, {2, 900, 0, 0, 'S', 1}}));
  std::vector<Diagnosis> told = s.look(kRanks);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].code, "SLOW-CPU-LIMIT");
  EXPECT_EQ(
      told[0].evidence.english,
      "the CPU limit of its cgroup throttled it for at least 60 % of the time: without the limit, steps could be up to 2.5 times as fast");
}

TEST(Straggler, AHypervisorThatTakesTheCpuOfOneHostIsTold) {
  Stragglers s, everywhere;
  for (int i = 0; i < diagnosis::kSlowWindows; ++i) {
    s.take(0, pulse({{0, 900, 0, 0, 'S', 1}, {1, 900, 0, 0, 'S', 1}}, 10));
    s.take(1, pulse({{2, 900, 0, 0, 'S', 1}}, 300));
    everywhere.take(0, pulse({{0, 900, 0, 0, 'S', 1}, {1, 900, 0, 0, 'S', 1}}, 280));
    everywhere.take(1, pulse({{2, 900, 0, 0, 'S', 1}}, 300));
  }
  std::vector<Diagnosis> told = s.look(kRanks);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].code, "SLOW-STEAL");
  EXPECT_EQ(told[0].host, 1u);
  EXPECT_TRUE(everywhere.look(kRanks).empty());
}

TEST(Straggler, CpusThatOtherProgramsHaveAreToldWhereAnotherHostHasFreeOnes) {
  Stragglers s, everywhere;
  for (int i = 0; i < diagnosis::kSlowWindows; ++i) {
    s.take(0, pulse({{0, 900, 0, 0, 'S', 1, 100}, {1, 900, 0, 0, 'S', 1, 50}}));
    s.take(1, pulse({{2, 900, 0, 0, 'R', 1, 2500}}));
    everywhere.take(0, pulse({{0, 900, 0, 0, 'S', 1, 2500}, {1, 900, 0, 0, 'S', 1, 2000}}));
    everywhere.take(1, pulse({{2, 900, 0, 0, 'R', 1, 2500}}));
  }
  std::vector<Diagnosis> told = s.look(kRanks);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].code, "LIM-BUSY");
  EXPECT_EQ(told[0].ranks, std::vector<int>{2});
  EXPECT_TRUE(everywhere.look(kRanks).empty()) << "a machine that all hosts share";
}

machine::Gpu gpu(int64_t index, int64_t used, int64_t percent, int64_t watts) {
  machine::Gpu g;
  g.index = index;
  g.memory_used_bytes = used;
  g.utilization_percent = percent;
  g.power_mw = watts * 1000;
  g.power_limit_mw = 400'000;
  g.processes = {{10 + index, used, "python3", "u", 1, 1, true}};
  return g;
}

TEST(Straggler, GpusThatSpinAndAFirstOneThatIsFull) {
  Stragglers s;
  std::set<int64_t> pids = {10, 11, 12, 13};
  std::vector<machine::Gpu> gpus;
  for (int64_t i = 0; i < 4; ++i) gpus.push_back(gpu(i, (i == 0 ? 30LL : 10LL) << 30, 100, 90));
  std::vector<Diagnosis> told = s.look_at_gpus(0, gpus, pids);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].code, "SLOW-GPU-WAITS");
  EXPECT_EQ(told[1].code, "SLOW-GPU0-MEMORY");
  EXPECT_TRUE(s.look_at_gpus(0, gpus, pids).empty());
  EXPECT_EQ(s.look_at_gpus(1, gpus, pids).size(), 2u) << "another host is another finding";
  EXPECT_TRUE(Stragglers().look_at_gpus(0, gpus, {999}).empty()) << "other people's GPUs";
  gpus[2].power_mw = 300'000;
  gpus[0].memory_used_bytes = 11LL << 30;
  EXPECT_TRUE(Stragglers().look_at_gpus(0, gpus, pids).empty());
}

TEST(Straggler, AHotAndACappedGpu) {
  machine::Gpu hot = gpu(0, 1, 100, 390), capped = gpu(1, 1, 100, 195);
  hot.throttle_reasons = 0x40;
  hot.temperature_c = 93;
  hot.clock_sm_mhz = 900;
  hot.clock_sm_max_mhz = 1980;
  capped.throttle_reasons = 0x4;
  capped.power_limit_mw = 200'000;
  capped.power_limit_default_mw = 400'000;
  std::vector<Diagnosis> told = Stragglers().look_at_gpus(0, {hot, capped}, {10, 11});
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].code, "PERF-HEAT");
  EXPECT_EQ(told[0].evidence.english, "GPU 0 is slowed down by heat: 93 °C (900 of 1980 MHz)");
  EXPECT_EQ(told[1].code, "PERF-POWER-LIMIT");
}

TEST(Straggler, LanesThatAreMissing) {
  machine::Gpu g = gpu(0, 1, 50, 200);
  g.pcie = {{"0000:3b:00.0", "16.0 GT/s", "16.0 GT/s", 8, 16, false}};
  std::vector<Diagnosis> told = Stragglers().look_at_gpus(0, {g}, {10});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].code, "PERF-PCIE-WIDTH");
}

}  // namespace
