// The engine's numbers against PyTorch's, for the same seed (tools/make_golden.py).
#include <gtest/gtest.h>

#include "base/text.h"
#include "training.h"

using namespace phalanx;

namespace {

TEST(Golden, TwelveStepsGiveTheLossesAndNormsOfPython) {
  const base::Json golden = ranks::golden();
  ranks::TempFolder folder;
  ranks::Outcome ours = ranks::train(ranks::small_config(folder), 1);
  ASSERT_TRUE(ours.errors.empty()) << ours.errors[0];
  ASSERT_EQ(ours.loss.size(), golden["losses"].size());
  for (size_t i = 0; i < golden["losses"].size(); ++i) {
    const auto step = static_cast<int64_t>(i) + 1;
    EXPECT_NEAR(ours.loss[step], golden["losses"][i].get<double>(), 2e-5) << "step " << step;
    EXPECT_NEAR(ours.grad_norm[step], golden["grad_norms"][i].get<double>(), 2e-4) << "step " << step;
  }
}

TEST(Golden, TwentyStepsOnOneToFourRanks) {
  const base::Json golden = ranks::golden();
  for (int world : {1, 2, 3, 4}) {
    ranks::TempFolder folder;
    ranks::Outcome ours = ranks::train(ranks::small_config(folder, {"train.steps=20", "train.batch=12", "optimizer.clip=0"}), world);
    ASSERT_TRUE(ours.errors.empty()) << ours.errors[0];
    const base::Json& truth = golden["ranks"][std::to_string(world)];
    ASSERT_EQ(ours.loss.size(), truth["losses"].size());
    for (size_t i = 0; i < truth["losses"].size(); ++i) {
      const auto step = static_cast<int64_t>(i) + 1;
      EXPECT_NEAR(ours.loss[step], truth["losses"][i].get<double>(), 5e-5) << world << " ranks, step " << step;
      EXPECT_NEAR(ours.grad_norm[step], truth["grad_norms"][i].get<double>(), 5e-4) << world << " ranks, step " << step;
    }
  }
}

}  // namespace
