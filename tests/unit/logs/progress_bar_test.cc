#include "logs/progress_bar.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace phalanx::logs {
namespace {

TEST(ProgressBar, Tqdm) {
  auto bar = parse_bar("train:  45%|████▌     | 450/1000 [00:12<00:15, 35.9it/s, loss=2.3, lr=1e-4]");
  ASSERT_TRUE(bar);
  EXPECT_EQ(bar->desc, "train");
  EXPECT_EQ(bar->done, 450);
  EXPECT_EQ(bar->total, 1000);
  EXPECT_DOUBLE_EQ(bar->fraction.value(), 0.45);
  EXPECT_EQ(bar->elapsed_s, 12);
  EXPECT_EQ(bar->eta_s, 15);
  EXPECT_EQ(bar->rate, "35.9it/s");
  EXPECT_EQ(bar->postfix, "loss=2.3, lr=1e-4");
  EXPECT_FALSE(bar->complete());
}

TEST(ProgressBar, TqdmAtTheStartAndTheEnd) {
  auto start = parse_bar("  0%|          | 0/3 [00:00<?, ?it/s]");
  ASSERT_TRUE(start);
  EXPECT_EQ(start->desc, "");
  EXPECT_EQ(start->fraction, 0.0);
  EXPECT_EQ(start->eta_s, std::nullopt);
  EXPECT_EQ(start->rate, "");
  auto end = parse_bar("100%|##########| 3/3 [1:02:03<00:00,  4.15s/it] ");
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->complete());
  EXPECT_EQ(end->elapsed_s, 3723);
  EXPECT_EQ(end->rate, "4.15s/it");
}

TEST(ProgressBar, TqdmRoundsUpToAHundredPercent) {
  auto bar = parse_bar("100%|█████████▉| 9996/10000 [00:12<00:00, 800it/s]");
  ASSERT_TRUE(bar);
  EXPECT_FALSE(bar->complete());
}

TEST(ProgressBar, TqdmScaledUnits) {
  auto bar = parse_bar("model.safetensors:  45%|████      | 1.36k/100M [00:00<00:07, 13.6kB/s, loss=2.3]");
  ASSERT_TRUE(bar);
  EXPECT_EQ(bar->desc, "model.safetensors");
  EXPECT_DOUBLE_EQ(bar->done.value(), 1360);
  EXPECT_DOUBLE_EQ(bar->total.value(), 100e6);
  EXPECT_EQ(bar->rate, "13.6kB/s");
}

TEST(ProgressBar, TqdmWithoutTotal) {
  auto bar = parse_bar("reading: 100000it [00:04, 23148.5it/s]");
  ASSERT_TRUE(bar);
  EXPECT_EQ(bar->desc, "reading");
  EXPECT_EQ(bar->done, 100000);
  EXPECT_EQ(bar->total, std::nullopt);
  EXPECT_EQ(bar->fraction, std::nullopt);
  EXPECT_EQ(bar->elapsed_s, 4);
  EXPECT_TRUE(parse_bar("0it [00:00, ?it/s]"));
}

TEST(ProgressBar, ColoursAndCursorMovesDoNotMatter) {
  auto bar = parse_bar("\x1b[32meval:  50%|\x1b[0m█████     | 1/2 [00:00<00:00,  8.32it/s]\x1b[A");
  ASSERT_TRUE(bar);
  EXPECT_EQ(bar->desc, "eval");
  EXPECT_EQ(bar->done, 1);
}

TEST(ProgressBar, ChineseDescription) {
  auto bar = parse_bar("训练:  45%|████▌     | 450/1000 [00:12<00:15, 35.9it/s]");
  ASSERT_TRUE(bar);
  EXPECT_EQ(bar->desc, "训练");
}

struct Case {
  const char* text;
  const char* desc;
  double fraction;
};

TEST(ProgressBar, OtherPrograms) {
  const std::vector<Case> cases = {
      {"Receiving objects:  45% (450/1000), 1.2 MiB | 2 MiB/s", "Receiving objects", 0.45},
      {"step 3/100", "step", 0.03},
      {" 45/100 [============>.................] - ETA: 3s - loss: 0.5", "", 0.45},
      {"   ━━━━━━━━━━━━━━━━━━━━╸━━━━━━ 45.0/100.0 MB 12.3 MB/s eta 0:00:05", "", 0.45},
      {"pip  45%[=======>       ]  12.3M  3.4MB/s    eta 5s", "pip", 0.45},
      {"Epoch 3: 100%", "Epoch 3", 1.0},
      {"\x1b[1m45/100\x1b[0m \x1b[32m━━━━\x1b[0m 1s 12ms/step", "", 0.45},
  };
  for (const Case& c : cases) {
    auto bar = parse_bar(c.text);
    ASSERT_TRUE(bar) << c.text;
    EXPECT_EQ(bar->desc, c.desc) << c.text;
    EXPECT_NEAR(bar->fraction.value_or(-1), c.fraction, 1e-9) << c.text;
  }
}

TEST(ProgressBar, WhatIsNotABar) {
  for (const char* text : {"", "   ", "loading", "2024/01/02 started", "/usr/lib/3/4x", "version 1.2/x", "12/0", "14/3", "%", "%|", "150%",
                           "a%b", "see http://host/1/2/3", "-1/3", "[00:12]", "x [a:b]", "1/2\n3/4"})
    EXPECT_FALSE(parse_bar(text)) << text;
  EXPECT_FALSE(parse_bar("50%" + std::string(kMaxBarBytes, 'x')));
}

TEST(ProgressBar, HugeAndBrokenNumbersDoNoHarm) {
  std::string digits(300, '9');
  parse_bar(digits + "%|x| " + digits + "/" + digits + "E [" + digits + ":00<1:" + digits + ", 1it/s]");
  parse_bar(std::string(400, '9') + "/" + std::string(400, '9'));
  EXPECT_TRUE(parse_bar(" 45%|████"));
}

TEST(ProgressBar, OneBarWhoseNumbersChange) {
  auto of = [](const char* desc) {
    Bar bar;
    bar.desc = desc;
    return bar;
  };
  EXPECT_TRUE(same_bar(of("epoch 1 loss 2.31"), of("epoch 1 loss 2.2")));
  EXPECT_TRUE(same_bar(of(""), of("")));
  EXPECT_FALSE(same_bar(of("epoch"), of("epoch 1.5"))) << "a blank more";
  EXPECT_FALSE(same_bar(of("train"), of("eval")));
  EXPECT_FALSE(same_bar(of(""), of("eval")));
}

}  // namespace
}  // namespace phalanx::logs
