// A checkpoint is complete or not there, at whatever moment its writer dies; and it is what was written.
#include "engine/checkpoint/checkpoint.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "os/files.h"
#include "ranks.h"

namespace {

using namespace engine::checkpoint;
namespace fs = std::filesystem;

Snapshot snapshot(int64_t step) {
  at::Tensor value = at::full({8}, static_cast<double>(step));
  return {step, {{"note", "test"}}, {{"w", value}}, {{"exp_avg.w", value * 2}}};
}

float value_of(const std::string& path) { return load(path).value().model.at("w")[0].item<float>(); }

struct Killed {};

TEST(Checkpoint, SavesAndLoads) {
  ranks::TempFolder folder;
  EXPECT_FALSE(latest(folder / "none").has_value());
  const std::string path = save(folder.path(), snapshot(5), 0).value();
  EXPECT_EQ(latest(folder.path()), path);
  Loaded loaded = load(path).value();
  EXPECT_EQ(loaded.step, 5);
  EXPECT_EQ(base::get_string(loaded.about, "note"), "test");
  EXPECT_EQ(loaded.optimizer.at("exp_avg.w")[7].item<float>(), 10);
}

// A writer that dies at any stage leaves the newest complete checkpoint in place, and the next save cleans up behind it.
TEST(Checkpoint, AKillAtAnyStageLeavesACompleteOne) {
  for (const char* fatal : {"model", "optimizer", "manifest", "rename", "done", "prune"}) {
    ranks::TempFolder folder;
    ASSERT_TRUE(save(folder.path(), snapshot(1), 1).ok());
    bool reached = false;
    try {
      auto ignored = save(folder.path(), snapshot(2), 1, [&](std::string_view stage) {
        if (stage == fatal) throw Killed{};
      });
    } catch (const Killed&) { reached = true; }
    ASSERT_TRUE(reached) << fatal;
    const float expected = std::string_view(fatal) == "prune" ? 2 : 1;
    ASSERT_TRUE(latest(folder.path()).has_value()) << fatal;
    EXPECT_EQ(value_of(*latest(folder.path())), expected) << fatal;
    ASSERT_TRUE(save(folder.path(), snapshot(3), 1).ok()) << fatal;
    EXPECT_EQ(value_of(*latest(folder.path())), 3) << fatal;
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1) << fatal << ": leftovers";
  }
}

TEST(Checkpoint, KeepsTheNewest) {
  ranks::TempFolder folder;
  for (int64_t step : {9, 10, 100, 99}) ASSERT_TRUE(save(folder.path(), snapshot(step), 2).ok());
  ASSERT_EQ(list(folder.path()).size(), 2u);
  EXPECT_EQ(value_of(list(folder.path())[0]), 99);
  EXPECT_EQ(value_of(*latest(folder.path())), 100);
  ASSERT_TRUE(save(folder.path(), snapshot(100), 2).ok()) << "the same step again replaces it";
  EXPECT_EQ(list(folder.path()).size(), 2u);
  ASSERT_TRUE(remove_all(folder.path()).ok());
  EXPECT_FALSE(latest(folder.path()).has_value());
}

TEST(Checkpoint, DamageIsFoundAndNamed) {
  struct Case {
    const char* file;
    const char* expected;
  };
  for (auto [file, expected] : {Case{"manifest.json", "DONE mark"}, Case{"model.safetensors", "model.safetensors"},
                                Case{"optimizer.safetensors", "optimizer.safetensors"}, Case{"DONE", "DONE mark"}}) {
    ranks::TempFolder folder;
    const std::string path = save(folder.path(), snapshot(1), 0).value();
    std::fstream damaged(path + "/" + file, std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp(20);
    damaged.put('#');
    damaged.close();
    auto loaded = load(path);
    ASSERT_FALSE(loaded.ok()) << file;
    EXPECT_EQ(base::exit_code(loaded.error().kind), 2);
    EXPECT_NE(loaded.error().render().find(expected), std::string::npos) << loaded.error().render();
  }
}

TEST(Checkpoint, AnotherVersionIsRefused) {
  ranks::TempFolder folder;
  const std::string path = save(folder.path(), snapshot(1), 0).value();
  EXPECT_FALSE(load(folder / "step-00000009").ok());
  fs::create_directory(folder / "step-00000009");
  fs::create_directory(folder / "step-");
  fs::create_directory(folder / "step-x9");
  EXPECT_EQ(list(folder.path()).size(), 1u) << "a folder without DONE is no checkpoint";
  EXPECT_EQ(latest(folder.path()), path);
}

}  // namespace
