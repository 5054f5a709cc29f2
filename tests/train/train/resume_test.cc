// A training that ended in the middle goes on as if it had not.
#include <gtest/gtest.h>

#include <filesystem>

#include "training.h"

namespace {

namespace fs = std::filesystem;

// What a training writes at step 6, continued to 12, is bit for bit what 12 steps without a break give.
TEST(Resume, EqualsAnUndisturbedRun) {
  for (int world : {1, 2}) {
    ranks::TempFolder whole, parts;
    const ranks::Outcome undisturbed = ranks::train(ranks::small_config(whole), world);
    auto config = ranks::small_config(parts, {"checkpoint.every=6"});
    // The first part ends as a kill would: behind step 9 with the checkpoint of step 6 (the one of step 12 is taken away).
    ASSERT_TRUE(ranks::train(config, world).errors.empty());
    fs::remove_all(parts / "out/checkpoints/step-00000012");
    const ranks::Outcome resumed = ranks::train(config, world);
    ASSERT_TRUE(resumed.errors.empty()) << resumed.errors[0];
    EXPECT_EQ(resumed.loss.size(), 12u);
    EXPECT_EQ(resumed.loss, undisturbed.loss);
    EXPECT_EQ(resumed.parameters, undisturbed.parameters);
  }
}

TEST(Resume, PolicyAndMismatch) {
  ranks::TempFolder folder;
  ASSERT_TRUE(ranks::train(ranks::small_config(folder), 1).errors.empty());
  auto refused = ranks::train(ranks::small_config(folder, {"checkpoint.existing=refuse"}), 2);
  ASSERT_EQ(refused.errors.size(), 2u);
  EXPECT_NE((refused.errors[0] + refused.errors[1]).find("already holds a checkpoint"), std::string::npos);
  auto other = ranks::train(ranks::small_config(folder, {"model.width=16"}), 1);
  ASSERT_EQ(other.errors.size(), 1u);
  EXPECT_NE(other.errors[0].find("of another model"), std::string::npos) << other.errors[0];
  auto replaced = ranks::train(ranks::small_config(folder, {"model.width=16", "checkpoint.existing=replace"}), 1);
  EXPECT_TRUE(replaced.errors.empty());
  EXPECT_EQ(replaced.loss.size(), 12u);
  auto finished = ranks::train(ranks::small_config(folder, {"model.width=16"}), 1);
  EXPECT_TRUE(finished.errors.empty());
  EXPECT_EQ(finished.loss.size(), 12u) << "a finished run has nothing left to do, and its log stays";
}

}  // namespace
