#include "logs/step_line.h"

#include <gtest/gtest.h>

using namespace phalanx;

namespace {

TEST(StepLine, TheUsualForms) {
  struct {
    const char* line;
    int64_t step;
  } kLines[] = {{"step 12 loss 2.31", 12},
                {"global_step=1200, lr=1e-4", 1200},
                {"Iteration: 7", 7},
                {"iter 12/1000 | loss 3", 12},
                {"Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.1", 1'000'000},
                {"[  12/1000] loss=2.3", 12},
                {"{'loss': 2.3, 'learning_rate': 5e-05, 'epoch': 0.03}", 30'000},
                {" 45%|####5     | 450/1000 [00:12<00:15, 35.9it/s, loss=2.3]", 450},
                {"Step[31]: ok", 31},
                {"batch 3/100", 3}};
  for (const auto& c : kLines) EXPECT_EQ(logs::step_in(c.line), c.step) << c.line;
}

TEST(StepLine, OtherLinesTellNone) {
  for (const char* line : {"", "loading model", "stepping stones", "misstep 3", "watchdog timed out after 600 s", "[INFO] ready", "[",
                           "step", "epoch 3 begins", "rank 0 pid 46"})
    EXPECT_FALSE(logs::step_in(line)) << line;
}

}  // namespace
