// Learning rates and loss scaling against PyTorch's.
#include <gtest/gtest.h>

#include "engine/optim/grad_scaler.h"
#include "engine/optim/schedule.h"
#include "oracle.h"

using namespace phalanx;

namespace {

using namespace engine::optim;

TEST(Schedule, EveryCurveIsLambdaLRs) {
  const base::Json* oracle = optim_oracle();
  if (!oracle) GTEST_SKIP() << "/usr/bin/python3 has no torch; apt-get install python3-torch";
  for (const char* name : {"constant", "linear", "cosine"}) {
    const auto truth = (*oracle)[name].get<std::vector<double>>();
    const Schedule schedule{curve_of(name).value(), 0.3, 0.03, 7, 50};
    for (size_t step = 0; step < truth.size(); ++step)
      EXPECT_NEAR(schedule.at(static_cast<int64_t>(step)), truth[step], 1e-15) << name << " " << step;
  }
  const auto annealing = (*oracle)["cosine_of_torch"].get<std::vector<double>>();
  const Schedule schedule{Curve::kCosine, 0.3, 0.03, 0, 50};
  for (size_t step = 0; step < annealing.size(); ++step)
    EXPECT_NEAR(schedule.at(static_cast<int64_t>(step)), annealing[step], 1e-12) << step;
  EXPECT_FALSE(curve_of("sine"));
}

TEST(Schedule, RisesThenFallsToItsFloor) {
  const Schedule schedule{Curve::kCosine, 1.0, 0.1, 10, 110};
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(9), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(10), 1.0);
  EXPECT_NEAR(schedule.at(60), 0.55, 1e-12);
  EXPECT_GT(schedule.at(109), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(110), 0.1);
  EXPECT_DOUBLE_EQ((Schedule{Curve::kCosine, 1.0, 0.0, 0, 1}.at(0)), 1.0);
}

TEST(Schedule, WarmUpAsAShareOfTheRun) {
  EXPECT_EQ(warmup_steps(0, 100), 0);
  EXPECT_EQ(warmup_steps(0.03, 100), 3);
  EXPECT_EQ(warmup_steps(0.031, 100), 4);
  EXPECT_EQ(warmup_steps(1, 100), 100);
}

TEST(GradScaler, GrowsAndBacksOffAsTorchs) {
  const base::Json* oracle = optim_oracle();
  if (!oracle) GTEST_SKIP() << "/usr/bin/python3 has no torch; apt-get install python3-torch";
  GradScaler scaler({65536, 2, 0.5, 4});
  const std::string_view overflows = "....x..x..........xx......";
  for (size_t step = 0; step < overflows.size(); ++step) {
    scaler.update(overflows[step] != 'x');
    EXPECT_EQ(scaler.scale(), (*oracle)["scaler"][step].get<double>()) << step;
    EXPECT_EQ(scaler.unscale() * scaler.scale(), 1);
  }
}

TEST(GradScaler, NeverGrowsToInfinity) {
  GradScaler scaler({65536, 2, 0.5, 1});
  for (int i = 0; i < 500; ++i) scaler.update(true);
  EXPECT_EQ(scaler.scale(), 0x1p127);
}

TEST(GradScaler, AResumedOneGoesOnAlike) {
  GradScaler one({65536, 2, 0.5, 5}), other;
  for (bool finite : {true, true, false, true, true, true}) one.update(finite);
  ASSERT_TRUE(other.restore(base::parse_json(base::to_text(one.state())).value()).ok());
  for (bool finite : {true, true, true, false, true}) {
    one.update(finite);
    other.update(finite);
    EXPECT_EQ(one.scale(), other.scale());
  }
  EXPECT_EQ(one.state(), other.state());
}

TEST(GradScaler, RefusesAStateThatCannotBe) {
  const base::Json good = GradScaler().state();
  const std::vector<std::pair<std::string, base::Json>> bad = {
      {"scale", 0.0},         {"scale", 1e39},           {"scale", "65536"},      {"growth_factor", 1.0}, {"backoff_factor", 1.5},
      {"growth_interval", 0}, {"_growth_tracker", 2000}, {"_growth_tracker", -1}, {"scale", nullptr}};
  for (const auto& [key, value] : bad) {
    base::Json state = good;
    state[key] = value;
    GradScaler scaler;
    base::Status status = scaler.restore(state);
    ASSERT_FALSE(status.ok()) << key << " " << value.dump();
    EXPECT_NE(status.error().render().find(key), std::string::npos);
    EXPECT_EQ(scaler.state(), good);
  }
}

}  // namespace
