// Neither the number of ranks, nor the number of passes, nor the parallel mode, nor activation checkpointing is part of the result.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "training.h"

using namespace phalanx;

namespace {

const std::vector<std::string> kModes = {"ddp", "zero1", "zero2", "zero3"};

double furthest(const ranks::Outcome& a, const ranks::Outcome& b) {
  double most = 0;
  EXPECT_EQ(a.parameters.size(), b.parameters.size());
  for (const auto& [name, values] : a.parameters)
    for (size_t i = 0; i < values.size(); ++i) {
      const double apart = std::abs(static_cast<double>(values[i]) - b.parameters.at(name).at(i));
      most = apart <= most ? most : apart;
    }
  return most;
}

void expect_same_curve(const ranks::Outcome& a, const ranks::Outcome& b, double within) {
  ASSERT_EQ(a.loss.size(), b.loss.size());
  for (auto [step, loss] : b.loss) EXPECT_NEAR(a.loss.at(step), loss, within) << "step " << step;
}

TEST(Ranks, EveryModeRankAndPassGivesTheCurveOfOneRank) {
  ranks::TempFolder alone;
  const ranks::Outcome truth = ranks::train(ranks::small_config(alone), 1);
  ASSERT_EQ(truth.loss.size(), 12u);
  for (const std::string& mode : kModes)
    for (int world : {1, 2, 4})
      for (int passes : {1, 2, 4})
        for (const char* recompute : {"off", "blocks"}) {
          if (8 / world % passes != 0) continue;
          SCOPED_TRACE(fmt::format("{}, {} ranks, {} passes, checkpointing {}", mode, world, passes, recompute));
          ranks::TempFolder folder;
          const auto config = ranks::small_config(folder, {"parallel.mode=" + mode, fmt::format("train.accumulate={}", passes),
                                                           fmt::format("model.activation_checkpointing={}", recompute),
                                                           "parallel.persistent_elements=40", "checkpoint.background=off"});
          const ranks::Outcome outcome = ranks::train(config, world);
          ASSERT_TRUE(outcome.errors.empty()) << outcome.errors[0];
          expect_same_curve(outcome, truth, 1e-5);
          EXPECT_LT(furthest(outcome, truth), 1.2e-4);
        }
}

TEST(Ranks, ModesAreEqualBitForBitWhenDeterministic) {
  for (int world : {2, 4}) {
    std::optional<ranks::Outcome> ddp;
    for (const std::string& mode : kModes) {
      ranks::TempFolder folder;
      const auto config = ranks::small_config(
          folder, {"parallel.mode=" + mode, "train.deterministic=on", "train.accumulate=2", "parallel.persistent_elements=40"});
      ranks::Outcome outcome = ranks::train(config, world);
      ASSERT_TRUE(outcome.errors.empty()) << outcome.errors[0];
      if (!ddp) ddp = outcome;
      EXPECT_EQ(outcome.parameters, ddp->parameters) << mode << ", " << world << " ranks";
      EXPECT_EQ(outcome.loss, ddp->loss) << mode << ", " << world << " ranks";
    }
  }
}

TEST(Ranks, ABatchThatCannotBeSharedIsRefused) {
  ranks::TempFolder folder;
  const ranks::Outcome outcome = ranks::train(ranks::small_config(folder), 3);
  ASSERT_EQ(outcome.errors.size(), 3u);
  EXPECT_NE(outcome.errors[0].find("train.batch=9"), std::string::npos) << outcome.errors[0];
}

// Items of different lengths, and not enough of them for all ranks at an epoch's end.
std::string ragged_items(const ranks::TempFolder& folder, int items) {
  const std::string path = folder / "items.jsonl";
  std::ofstream file(path);
  for (int i = 0; i < items; ++i)
    file << R"({"prompt": "say )" << i << R"(: ", "text": ")" << std::string(static_cast<size_t>(1 + i * 5 % 9), static_cast<char>('a' + i))
         << "\"}\n";
  return path;
}

TEST(Ranks, UnevenItemsEndTogetherAndCountEachTokenOnce) {
  for (int items : {10, 3}) {  // 10 of 4 a step: 4, 4, 2, so two of four ranks have nothing; 3: one never has anything
    std::optional<ranks::Outcome> truth;
    for (int world : {1, 2, 4})
      for (const std::string& mode : kModes) {
        SCOPED_TRACE(fmt::format("{} items, {}, {} ranks", items, mode, world));
        ranks::TempFolder folder;
        const auto config =
            ranks::small_config(folder, {"data.corpus=", "data.files=" + ragged_items(folder, items), "data.format=jsonl",
                                         "data.prompt_field=prompt", "data.remainder=keep", "train.batch=4", "train.steps=7",
                                         "model.vocabulary=256", "parallel.mode=" + mode, "parallel.persistent_elements=40"});
        const ranks::Outcome outcome = ranks::train(config, world);
        ASSERT_TRUE(outcome.errors.empty()) << outcome.errors[0];
        if (!truth) truth = outcome;
        expect_same_curve(outcome, *truth, 2e-5);
      }
  }
}

TEST(Ranks, StopEarlyTogether) {
  for (const std::string mode : {"ddp", "zero3"})
    for (int world : {1, 4}) {
      ranks::TempFolder folder;
      // A rate at which nothing is learned: each validation is as bad as the first.
      const auto config =
          ranks::small_config(folder, {"data.validation=0.3", "validation.every=2", "validation.batches=2", "validation.patience=2",
                                       "validation.min_delta=1", "train.steps=100", "parallel.mode=" + mode, "train.batch=4"});
      const ranks::Outcome outcome = ranks::train(config, world);
      ASSERT_TRUE(outcome.errors.empty()) << outcome.errors[0];
      EXPECT_EQ(outcome.loss.size(), 6u) << mode << ", " << world << " ranks: the first validation is the best, two are no better";
    }
}

TEST(Ranks, ScaledLossesGiveTheSameCurve) {
  ranks::TempFolder plain, scaled;
  const ranks::Outcome truth = ranks::train(ranks::small_config(plain), 2);
  const ranks::Outcome outcome = ranks::train(ranks::small_config(scaled, {"train.loss_scaling=on"}), 2);
  ASSERT_TRUE(outcome.errors.empty()) << outcome.errors[0];
  expect_same_curve(outcome, truth, 1e-5);
}

TEST(Ranks, Bf16IsCloseToFp32) {
  ranks::TempFolder plain;
  const ranks::Outcome truth = ranks::train(ranks::small_config(plain), 2);
  for (const char* precision : {"bf16", "bf16-weights"})
    for (const std::string& mode : kModes) {
      ranks::TempFolder folder;
      const auto config = ranks::small_config(folder, {std::string("train.precision=") + precision, "parallel.mode=" + mode});
      const ranks::Outcome outcome = ranks::train(config, 2);
      ASSERT_TRUE(outcome.errors.empty()) << outcome.errors[0];
      expect_same_curve(outcome, truth, 0.06);
      EXPECT_NE(outcome.loss, truth.loss) << precision << " was used";
    }
}

}  // namespace
