#include "logs/line_progress.h"

#include <gtest/gtest.h>

#include "logs/step_line.h"

namespace phalanx::logs {
namespace {

std::string figures(std::string_view line) {
  std::optional<StepFigures> f = step_figures(line);
  if (!f) return "-";
  std::string text = f->step ? std::to_string(*f->step) : "?";
  if (f->total) text += "/" + std::to_string(*f->total);
  if (f->loss) text += " " + std::to_string(*f->loss).substr(0, 6);
  return text;
}

TEST(StepFigures, OfTheLinesThatProgramsPrint) {
  EXPECT_EQ(figures("step 5/300 loss 16.7223"), "5/300 16.722");
  EXPECT_EQ(figures("[rank0] step: 12, loss: 2.3e-1"), "12 0.2300");
  EXPECT_EQ(figures("global_step=12 train_loss=2.5"), "12 2.5000");
  EXPECT_EQ(figures("Epoch 3 | Step 40 of 900 | val_loss: 1.5"), "40/900 1.5000");
  EXPECT_EQ(figures("iter 7/10"), "7/10");
  EXPECT_EQ(figures("[  12/1000] loss 2.25 lr 3e-4"), "12/1000 2.2500");
  EXPECT_EQ(figures("{'loss': 2.5, 'grad_norm': 1.1, 'learning_rate': 5e-05, 'epoch': 0.03}"), "? 2.5000");
  EXPECT_EQ(figures("Iteration 1500: loss=-0.5"), "1500 -0.500");
}

TEST(StepFigures, NotOfOtherLines) {
  for (const char* line :
       {"", "loading checkpoint shards", "step 1: install the driver", "batch size 32", "took 3 steps", "step 0.25s loss", "loss 2.5",
        "footstep 5/300", "the loss of rank 3 is not known", "{'epoch': 1.0}", "step", "batch_size: 5/7"})
    EXPECT_EQ(figures(line), "-") << line;
}

os::Mono at(int milliseconds) { return {int64_t{1'000'000} * milliseconds}; }

TEST(LineProgress, WhatWasHeldIsReadWhenTheRankFallsSilent) {
  LineProgress lines;
  EXPECT_FALSE(lines.due(at(0)));
  ASSERT_TRUE(lines.take("step 1/9 loss 4.5\n", at(0)));
  EXPECT_FALSE(lines.due(at(1000))) << "nothing is held";
  EXPECT_FALSE(lines.take("step 2/9 loss 4.0\n", at(1100)) && lines.take("step 3/9 loss 3.5\n", at(1150)));
  EXPECT_FALSE(lines.due(at(1200)));
  std::optional<wire::RankProgress> held = lines.due(at(1400));
  ASSERT_TRUE(held);
  EXPECT_EQ(held->step, 3);
  EXPECT_FALSE(lines.due(at(9000)));
}

TEST(LineProgress, TheLastLineOfAChunkAndTheLastOfAll) {
  LineProgress lines;
  std::optional<wire::RankProgress> first = lines.take("hello\nstep 1/9 loss 4.5\nstep 2/9 loss 4.0\nsaved\n", at(0));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->step, 2);
  EXPECT_EQ(first->total, 9);
  EXPECT_EQ(first->loss, 4.0);
  EXPECT_FALSE(lines.take("step 3/9 loss 3.5\n", at(100))) << "not so often";
  EXPECT_EQ(lines.take("step 4/9 loss 3.0\n", at(300))->step, 4);
  EXPECT_FALSE(lines.take("step 9/9 loss 1.0\n", at(310)));
  std::optional<wire::RankProgress> last = lines.last();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->step, 9);
  EXPECT_FALSE(lines.last()) << "once";
}

TEST(LineProgress, TheTrainersLossWithTheStepsOfItsBar) {
  LineProgress lines;
  lines.bar(" 45%|████▌     | 450/1000 [00:12<00:15, 35.9it/s]");
  std::optional<wire::RankProgress> progress = lines.take("{'loss': 2.5, 'epoch': 0.45}\n", at(0));
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->step, 450);
  EXPECT_EQ(progress->total, 1000);
  EXPECT_EQ(progress->loss, 2.5);
}

TEST(LineProgress, NothingWhereBetterIsKnown) {
  LineProgress with_loss;
  with_loss.bar(" 45%|████▌     | 450/1000 [00:12<00:15, 35.9it/s, loss=2.3]");
  EXPECT_FALSE(with_loss.take("step 5/300 loss 2.2\n", at(0))) << "the bar is read itself";
  LineProgress reporting;
  reporting.reports_itself();
  EXPECT_FALSE(reporting.take("step 5/300 loss 2.2\n", at(0)));
  EXPECT_FALSE(reporting.last());
}

}  // namespace
}  // namespace phalanx::logs
