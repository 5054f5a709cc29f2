#include "logs/line_progress.h"

#include <gtest/gtest.h>

#include <cmath>

#include <fmt/format.h>

#include "logs/step_line.h"

namespace phalanx::logs {
namespace {

std::string figures(std::string_view line) {
  std::optional<StepFigures> f = step_figures(line);
  if (!f) return "-";
  std::string text = f->step ? std::to_string(*f->step) : "?";
  if (f->total) text += "/" + std::to_string(*f->total);
  if (f->tokens_per_s) text += fmt::format(" {:g} tok/s{}", *f->tokens_per_s, f->per_rank ? " each" : "");
  if (f->samples_per_s) text += fmt::format(" {:g} samples/s", *f->samples_per_s);
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

// As the programs write them, by their sources: transformers trainer_callback.py, LLaMA-Factory train/callbacks.py, deepspeed
// runtime/engine.py and utils/timer.py, Megatron-LM training.py, torchtitan components/metrics.py.
TEST(StepFigures, OfFrameworks) {
  EXPECT_EQ(figures("{'loss': '2.5', 'grad_norm': '1.1', 'learning_rate': '5e-05', 'epoch': '0.03'}"), "? 2.5000");
  EXPECT_EQ(figures(R"({"current_steps": 5, "total_steps": 30, "loss": 1.25, "lr": 5e-05, "epoch": 0.5, "percentage": 16.67, )"
                    R"("elapsed_time": "0:00:05", "remaining_time": "0:00:25", "throughput": 1234.5, "total_tokens": 6172})"),
            "5/30 1234.5 tok/s 1.2500");
  EXPECT_EQ(figures("[2024-05-01 12:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[1e-4], mom=[(0.9, 0.99)]"),
            "10");
  EXPECT_EQ(figures("[2024-05-01 12:00:00,000] [INFO] [timer.py:258:stop] epoch=0/micro_step=20/global_step=10, "
                    "RunningAvgSamplesPerSec=102.5, CurrSamplesPerSec=99.5, MemAllocated=1.2GB, MaxMemAllocated=2.3GB"),
            "10 99.5 samples/s");
  EXPECT_EQ(
      figures(" iteration       10/     100 | consumed samples:          160 | elapsed time per iteration (ms): 512.3 | learning rate: "
              "1.000E-04 | global batch size:    16 | lm loss: 9.870000E+00 | loss scale: 1.0 | grad norm: 1.2 | samples per second: "
              "31.25 | TFLOPs: 12.0 |"),
      "10/100 31.25 samples/s 9.8700");
  EXPECT_EQ(figures("[titan] 2025-01-01 10:00:00,000 - root - INFO - \x1b[31mstep:  1  \x1b[32mloss: 12.25  \x1b[38;2;180;60;0mgrad_norm:  "
                    "3.1  \x1b[33mmemory:  9.5GiB(10.00%)  \x1b[34mtps: 4,123  \x1b[36mtflops: 24.1  \x1b[35mmfu: 7.7%\x1b[39m"),
            "1 4123 tok/s each 12.250");
  EXPECT_EQ(figures("step 40 | loss 3.5 | tokens/s: 1,234,567.5"), "40 1.23457e+06 tok/s 3.5000");
  EXPECT_EQ(figures("Epoch 1 | batch 30/100 | loss 0.5 | 812 samples/s"), "30/100 0.5000");  // the number stands in front
}

// Their loss is not that of a step.
TEST(StepFigures, NotOfEvaluations) {
  for (const char* line : {"{'eval_loss': 2.2, 'eval_runtime': 1.2, 'eval_samples_per_second': 12.1, 'epoch': 1.0}",
                           "{'train_runtime': 12.3, 'train_samples_per_second': 10.2, 'train_loss': 2.1, 'epoch': 1.0}",
                           R"({"current_steps": 30, "total_steps": 30, "eval_loss": 1.1, "epoch": 1.0})"})
    EXPECT_EQ(figures(line), "-") << line;
}

TEST(StepFigures, OfHostileLines) {
  for (const std::string& line : {std::string(100'000, '{'), "step " + std::string(5000, '9') + " loss 1", "loss " + std::string(900, '9'),
                                  std::string("step 5 tps: 1e+1e+1e+"), std::string("step 5 loss 1 tps: ,,,,"),
                                  "tps: " + std::string(900, ','), std::string("step \x1b[ loss"), std::string("step\0 5 loss 2", 14)})
    EXPECT_TRUE(std::isfinite(step_figures(line).value_or(StepFigures{}).tokens_per_s.value_or(0))) << line;
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

TEST(LineProgress, TheThroughputOfOneRankCountsForAll) {
  LineProgress lines;
  lines.of_ranks(8);
  EXPECT_EQ(lines.take("step: 3  loss: 2.5  tps: 1,000\n", at(0))->tokens_per_s, 8000);
  EXPECT_EQ(lines.take("step 4 loss 2.5 tokens/s: 1000\n", at(300))->tokens_per_s, 1000);
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
