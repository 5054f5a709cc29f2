// The engine's numbers against PyTorch's, for the same seed (tools/make_golden.py).
#include <gtest/gtest.h>

#include "base/text.h"
#include "training.h"

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

}  // namespace
