// A training that ended in the middle goes on as if it had not, also on other ranks and in another mode.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/train/trainer.h"
#include "training.h"

using namespace phalanx;

namespace {

namespace fs = std::filesystem;

using Settings = std::vector<std::string>;

Settings mode(const std::string& name, Settings more = {}) {
  more.insert(more.end(), {"parallel.mode=" + name, "parallel.persistent_elements=40", "checkpoint.every=6"});
  return more;
}

// The first part ends as a kill would: the checkpoint of step 6 is there, that of step 12 is not.
void first_part(const ranks::TempFolder& folder, const Settings& settings, int world) {
  const ranks::Outcome first = ranks::train(ranks::small_config(folder, settings), world);
  ASSERT_TRUE(first.errors.empty()) << first.errors[0];
  ASSERT_TRUE(fs::remove_all(folder / "out/checkpoints/step-00000012") > 1);
}

TEST(Resume, EqualsAnUndisturbedRun) {
  for (const std::string name : {"ddp", "zero1", "zero2", "zero3"})
    for (int world : {1, 2, 3})
      for (const char* layout : {"sharded", "gathered"}) {
        if (world == 1 && layout == std::string("gathered")) continue;
        SCOPED_TRACE(fmt::format("{}, {} ranks, {}", name, world, layout));
        const Settings settings = mode(name, {std::string("checkpoint.layout=") + layout, "train.batch=6", "train.deterministic=on"});
        ranks::TempFolder whole, parts;
        const ranks::Outcome undisturbed = ranks::train(ranks::small_config(whole, settings), world);
        first_part(parts, settings, world);
        const ranks::Outcome resumed = ranks::train(ranks::small_config(parts, settings), world);
        ASSERT_TRUE(resumed.errors.empty()) << resumed.errors[0];
        EXPECT_EQ(resumed.loss.size(), 12u);
        EXPECT_EQ(resumed.loss, undisturbed.loss);
        EXPECT_EQ(resumed.parameters, undisturbed.parameters);
      }
}

TEST(Resume, OnOtherRanksAndInAnotherModeJoinsTheCurve) {
  ranks::TempFolder whole;
  const ranks::Outcome undisturbed = ranks::train(ranks::small_config(whole, {"train.batch=12"}), 1);
  struct Cut {
    std::string mode;
    int world;
  };
  const std::vector<std::pair<Cut, Cut>> changes = {{{"ddp", 2}, {"zero3", 4}},   {{"zero3", 4}, {"ddp", 1}},
                                                    {{"zero3", 3}, {"zero3", 2}}, {{"zero2", 2}, {"zero1", 3}},
                                                    {{"zero1", 1}, {"zero2", 4}}, {{"zero3", 2}, {"zero1", 4}}};
  for (const auto& [from, to] : changes) {
    SCOPED_TRACE(fmt::format("{} on {} to {} on {}", from.mode, from.world, to.mode, to.world));
    ranks::TempFolder parts;
    first_part(parts, mode(from.mode, {"train.batch=12"}), from.world);
    const ranks::Outcome resumed = ranks::train(ranks::small_config(parts, mode(to.mode, {"train.batch=12"})), to.world);
    ASSERT_TRUE(resumed.errors.empty()) << resumed.errors[0];
    ASSERT_EQ(resumed.loss.size(), 12u);
    for (auto [step, loss] : undisturbed.loss) EXPECT_NEAR(resumed.loss.at(step), loss, 2e-5) << "step " << step;
  }
}

TEST(Resume, TakesTheDataUpWhereItStood) {
  // Several epochs, with items that no rank has at their ends.
  for (const char* streaming : {"off", "on"}) {
    const Settings settings =
        mode("zero2", {"data.corpus=", "data.format=lines", "data.remainder=keep", "train.batch=4", "model.vocabulary=256",
                       std::string("data.streaming=") + streaming, "data.shuffle_buffer=8", "data.workers=2"});
    auto with_lines = [&](const ranks::TempFolder& folder) {
      const std::string path = folder / "lines.txt";
      FILE* file = std::fopen(path.c_str(), "w");
      for (int i = 0; i < 19; ++i) std::fprintf(file, "line %d of nineteen\n", i * i);
      std::fclose(file);
      Settings all = settings;
      all.push_back("data.files=" + path);
      return all;
    };
    ranks::TempFolder whole, parts;
    const ranks::Outcome undisturbed = ranks::train(ranks::small_config(whole, with_lines(whole)), 2);
    ASSERT_TRUE(undisturbed.errors.empty()) << undisturbed.errors[0];
    first_part(parts, with_lines(parts), 2);
    const ranks::Outcome resumed = ranks::train(ranks::small_config(parts, with_lines(parts)), 2);
    ASSERT_TRUE(resumed.errors.empty()) << resumed.errors[0];
    EXPECT_EQ(resumed.loss, undisturbed.loss) << "streaming " << streaming;
  }
}

TEST(Resume, PassesOverADamagedCheckpoint) {
  ranks::TempFolder folder;
  const Settings settings = mode("zero3");
  ASSERT_TRUE(ranks::train(ranks::small_config(folder, settings), 2).errors.empty());
  fs::resize_file(folder / "out/checkpoints/step-00000012/shard-00001-of-00002.safetensors", 100);
  const ranks::Outcome resumed = ranks::train(ranks::small_config(folder, settings), 2);
  ASSERT_TRUE(resumed.errors.empty()) << resumed.errors[0];
  EXPECT_EQ(resumed.loss.size(), 12u);
}

TEST(Resume, PolicyAndMismatch) {
  ranks::TempFolder folder;
  ASSERT_TRUE(ranks::train(ranks::small_config(folder), 1).errors.empty());
  auto refused = ranks::train(ranks::small_config(folder, {"checkpoint.existing=refuse"}), 2);
  ASSERT_EQ(refused.errors.size(), 2u);
  EXPECT_NE((refused.errors[0] + refused.errors[1]).find("already holds a checkpoint"), std::string::npos);
  auto other = ranks::train(ranks::small_config(folder, {"model.width=16"}), 1);
  ASSERT_EQ(other.errors.size(), 1u);
  EXPECT_NE(other.errors[0].find("belongs to another training"), std::string::npos) << other.errors[0];
  auto optimizer = ranks::train(ranks::small_config(folder, {"optimizer.name=sgd"}), 1);
  ASSERT_EQ(optimizer.errors.size(), 1u);
  EXPECT_NE(optimizer.errors[0].find("momentum_buffer"), std::string::npos) << optimizer.errors[0];
  auto replaced = ranks::train(ranks::small_config(folder, {"model.width=16", "checkpoint.existing=replace"}), 1);
  EXPECT_TRUE(replaced.errors.empty());
  EXPECT_EQ(replaced.loss.size(), 12u);
  auto finished = ranks::train(ranks::small_config(folder, {"model.width=16"}), 1);
  EXPECT_TRUE(finished.errors.empty());
  EXPECT_EQ(finished.loss.size(), 12u) << "a finished run has nothing left to do, and its log stays";
}

// A restart must not do once more what was asked for of an older run's checkpoints.
TEST(Resume, WhatAnEarlierAttemptOfTheRunHasSavedIsContinued) {
  ranks::TempFolder folder;
  const auto attempt = [&](const char* existing, const char* width, const char* run, int64_t restarts) {
    const auto config = ranks::small_config(folder, {std::string("checkpoint.existing=") + existing, std::string("model.width=") + width});
    const ranks::Outcome outcome = ranks::train(config, 1, {run, restarts});
    return outcome.errors.empty() ? std::string() : outcome.errors[0];
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_EQ(attempt("replace", "8", "run a", 0), "");
  EXPECT_EQ(attempt("refuse", "8", "run a", 1), "");
  EXPECT_TRUE(has(attempt("replace", "16", "run a", 2), "belongs to another training")) << "it was removed";
  EXPECT_TRUE(has(attempt("refuse", "8", "run b", 1), "already holds a checkpoint")) << "of another run";
  EXPECT_TRUE(has(attempt("refuse", "8", "run a", 0), "already holds a checkpoint")) << "a first attempt";
  EXPECT_TRUE(has(attempt("refuse", "8", "", 1), "already holds a checkpoint")) << "of which run, nobody says";
  EXPECT_EQ(attempt("replace", "16", "run b", 1), "");
}

TEST(Resume, RanksWhoseValidationDataDifferDoNotStart) {
  ranks::TempFolder folder;
  std::vector<std::string> files;
  for (int rank = 0; rank < 2; ++rank) {
    files.push_back(folder / fmt::format("validation-{}.txt", rank));
    std::ofstream(files.back()) << std::string(4000 + 1000 * static_cast<size_t>(rank), 'v');
  }
  std::vector<std::string> errors(2);
  ranks::run(2, [&](engine::comm::Group& group) {
    const auto config =
        ranks::small_config(folder, {"data.validation_files=" + files[static_cast<size_t>(group.rank())], "validation.every=4"});
    engine::train::Progress progress(group.rank(), 1, -1);
    const auto trainer = engine::train::Trainer::begin(config, group, progress);
    if (!trainer.ok()) errors[static_cast<size_t>(group.rank())] = trainer.error().render();
  });
  for (const std::string& error : errors) EXPECT_NE(error.find("the validation data"), std::string::npos) << error;
}

}  // namespace
