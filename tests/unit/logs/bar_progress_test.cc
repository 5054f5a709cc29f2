#include "logs/bar_progress.h"

#include <gtest/gtest.h>

namespace phalanx::logs {
namespace {

constexpr int64_t kMs = 1'000'000;

Bar bar(std::string_view text) {
  auto parsed = parse_bar(text);
  EXPECT_TRUE(parsed) << text;
  return parsed.value_or(Bar{});
}

TEST(BarProgress, TheLossOfAPostfix) {
  EXPECT_EQ(loss_in("loss=2.31, lr=1e-4"), 2.31);
  EXPECT_EQ(loss_in("v_num=3, train_loss: 0.5"), 0.5);
  EXPECT_EQ(loss_in("{'loss': 3e-2}"), 0.03);
  for (const char* none : {"", "loss", "loss=", "loss=nan", "loss=inf", "lr=3", "lossless 7"}) EXPECT_FALSE(loss_in(none)) << none;
  EXPECT_EQ(loss_in("lossy=x, loss=1"), 1.0);
}

TEST(BarProgress, TheEndOfABarIsALine) {
  std::string_view bar = "train:  50%|#####     | 5/10 [00:01<00:01, 5.0it/s, loss=2]";
  std::string_view end = "train: 100%|##########| 10/10 [00:02<00:00, 5.0it/s, loss=1]";
  std::string lines = std::string(end) + "\nmore\n";
  EXPECT_EQ(last_state(bar, lines), end);
  EXPECT_EQ(last_state(bar, "saved\n"), "");
  EXPECT_EQ(last_state("", end), "");
}

TEST(BarProgress, CountsOverEpochsAndNotTooOften) {
  BarProgress progress;
  auto at = [&](const char* text, int64_t ms) { return progress.take(bar(text), os::Mono{ms * kMs}); };
  auto first = at("epoch 1:  10%|#         | 1/10 [00:01<00:09, 1.0it/s, loss=3.5]", 1000);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->step, 1);
  EXPECT_EQ(first->total, 10);
  EXPECT_EQ(first->loss, 3.5);
  EXPECT_FALSE(at("epoch 1:  20%|##        | 2/10 [00:01<00:09, 1.0it/s, loss=3.4]", 1200)) << "too soon";
  EXPECT_EQ(at("epoch 1: 100%|##########| 10/10 [00:01<00:00, 9.0it/s, loss=3.0]", 1300)->step, 10) << "the last state counts";
  EXPECT_FALSE(at("eval:  50%|#####     | 5/10 [00:01<00:01, 5.0it/s]", 3000)) << "it shows no loss";
  auto next = at("epoch 2:  20%|##        | 2/10 [00:01<00:09, 1.0it/s, loss=2.9]", 4000);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->step, 12);
  EXPECT_FALSE(next->total) << "of all epochs it is not known";
}

}  // namespace
}  // namespace phalanx::logs
