// The number of ranks is no part of the result.
#include <gtest/gtest.h>

#include "training.h"

namespace {

TEST(Trainer, DoesNotDependOnRanksOrAccumulation) {
  ranks::TempFolder alone;
  const ranks::Outcome reference = ranks::train(ranks::small_config(alone), 1);
  ASSERT_EQ(reference.loss.size(), 12u);
  struct Case {
    int world, accumulate;
  };
  for (auto [world, accumulate] : {Case{2, 1}, Case{4, 1}, Case{1, 4}, Case{2, 4}}) {
    ranks::TempFolder folder;
    auto config = ranks::small_config(folder, {"train.accumulate=" + std::to_string(accumulate)});
    const ranks::Outcome outcome = ranks::train(config, world);
    ASSERT_TRUE(outcome.errors.empty()) << outcome.errors[0];
    for (auto [step, loss] : reference.loss) EXPECT_NEAR(outcome.loss.at(step), loss, 1e-5) << world << " ranks, step " << step;
    ASSERT_EQ(outcome.parameters.size(), reference.parameters.size());
    double most = 0;
    for (size_t i = 0; i < outcome.parameters.size(); ++i)
      most = std::max(most, std::abs(static_cast<double>(outcome.parameters[i]) - reference.parameters[i]));
    EXPECT_LT(most, 1e-5 * 12) << world << " ranks × " << accumulate;
  }
}

TEST(Trainer, RefusesABatchThatCannotBeShared) {
  ranks::TempFolder folder;
  const ranks::Outcome outcome = ranks::train(ranks::small_config(folder), 3);
  ASSERT_EQ(outcome.errors.size(), 3u);
  EXPECT_NE(outcome.errors[0].find("hint: train.batch=9"), std::string::npos) << outcome.errors[0];
}

}  // namespace
