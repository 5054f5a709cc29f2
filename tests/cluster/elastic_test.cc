// A training of phalanx-train on 4 hosts × 2 ranks loses a host by power-off and goes on from the last checkpoint, on a spare and with
// three hosts. Its loss is that of an undisturbed run but for the order in which sums of floats are made.
#include "elastic.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "launcher_fixture.h"

namespace phalanx::testbed {
namespace {

constexpr double kBound = 1e-3;  // of the loss, absolute

class Elastic : public Launcher {
 protected:
  void SetUp() override {
    Launcher::SetUp();
    if (IsSkipped()) return;
    std::string folder = TESTBED_BINARY_DIR "/elastic-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    start({.hosts = 5});
    training_.emplace(folder_, PHALANX_PROGRAM, TESTBED_SOURCE_DIR "/docs/commands.md");
  }
  void TearDown() override {
    Launcher::TearDown();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  void expect_as_undisturbed(const Trial& trial) {
    TrialResult reference = training_->undisturbed(cluster());
    ASSERT_EQ(reference.exit_code, 0) << reference.talk;
    ASSERT_GT(reference.loss, 0);
    forget_bystander(trial.host);
    TrialResult result = training_->disturbed(cluster(), trial);
    EXPECT_EQ(result.exit_code, 0) << result.talk;
    EXPECT_GE(result.resumed, ElasticTraining::kCheckpointEvery) << result.talk;
    EXPECT_NEAR(result.loss, reference.loss, kBound) << result.talk;
    EXPECT_EQ(result.left, "");
    EXPECT_HAS(result.talk, trial.host + ": lost contact with the host");
    std::printf("loss %.6f, undisturbed %.6f; resumed after step %lld; %.1f s\n", result.loss, reference.loss,
                static_cast<long long>(result.resumed), result.seconds);
  }
  std::optional<ElasticTraining> training_;

 private:
  std::string folder_;
};

TEST_F(Elastic, ThreeHostsGiveTheLossesOfOne) {
  const TrialResult one = training_->on_hosts(cluster(), "h1"), three = training_->on_hosts(cluster(), "h1,h2,h3");
  ASSERT_EQ(one.exit_code, 0) << one.talk;
  ASSERT_EQ(three.exit_code, 0) << three.talk;
  EXPECT_HAS(three.talk, "on each of 3 hosts");
  ASSERT_EQ(three.losses.size(), one.losses.size());
  for (const auto& [step, loss] : one.losses) EXPECT_NEAR(three.losses.at(step), loss, 1e-4) << "step " << step;
}

TEST_F(Elastic, OnASpareAfterItsHostIsSwitchedOff) { expect_as_undisturbed({Blow::kPowerOff, "h3", 45, true}); }

TEST_F(Elastic, WithThreeHostsAfterTheHostOfRankZeroIsSwitchedOff) { expect_as_undisturbed({Blow::kPowerOff, "h1", 65, false}); }

}  // namespace
}  // namespace phalanx::testbed
