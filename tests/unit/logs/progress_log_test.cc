#include "logs/runs/progress_log.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>

#include "logs/runs/disk_files.h"
#include "os/files.h"

namespace phalanx::logs {
namespace {

class Progress : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/progress.jsonl"; }
  std::vector<ProgressPoint> read() const {
    auto text = os::read_file(path(), kMaxProgressBytes);
    return text.ok() ? read_progress(*text) : std::vector<ProgressPoint>{};
  }
  std::string folder_ = "/tmp/phalanx-progress-XXXXXX";
  DiskFiles files_{{}};
};

wire::RankProgress at_step(int64_t step) {
  wire::RankProgress progress;
  progress.step = step;
  progress.loss = 1.0 / static_cast<double>(step + 1);
  return progress;
}

TEST_F(Progress, EveryReportOfAShortRun) {
  ProgressLog log(files_, path());
  EXPECT_FALSE(os::exists(path()));
  for (int i = 0; i < 10; ++i) log.add(i * 0.5, i % 2, at_step(i));
  log.close();
  std::vector<ProgressPoint> points = read();
  ASSERT_EQ(points.size(), 10u);
  EXPECT_EQ(points[7].rank, 1);
  EXPECT_EQ(points[7].progress.step, 7);
  EXPECT_DOUBLE_EQ(points[7].t, 3.5);
  EXPECT_FALSE(points[7].progress.total.has_value());
}

TEST_F(Progress, ALongRunKeepsItsShapeAndItsEnd) {
  ProgressLog log(files_, path(), 64);
  for (int i = 0; i < 10'001; ++i)
    for (int rank : {0, 1}) log.add(i, rank, at_step(i));
  log.close();
  std::vector<ProgressPoint> points = read();
  EXPECT_LE(points.size(), 64u + 2);
  EXPECT_GE(points.size(), 32u);
  for (int rank : {0, 1}) {
    std::vector<int64_t> steps;
    for (const ProgressPoint& p : points)
      if (p.rank == rank) steps.push_back(*p.progress.step);
    EXPECT_EQ(steps.front(), 0);
    EXPECT_EQ(steps.back(), 10'000);
    EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
    for (size_t i = 2; i + 1 < steps.size(); ++i) EXPECT_EQ(steps[i] - steps[i - 1], steps[1] - steps[0]) << "an even density";
  }
}

TEST_F(Progress, MoreRanksThanRoom) {
  ProgressLog log(files_, path(), 64);
  for (int round = 0; round < 50; ++round)
    for (int rank = 0; rank < 1000; ++rank) log.add(round, rank, at_step(round));
  log.close();
  EXPECT_LE(read().size(), 64u + 16);
}

TEST_F(Progress, AFullDiskIsToldOnce) {
  int told = 0;
  DiskFiles full([&](const std::string&) { ++told; });
  ProgressLog log(full, "/proc/nowhere/progress.jsonl");
  for (int i = 0; i < 100; ++i) log.add(i, 0, at_step(i));
  log.close();
  EXPECT_EQ(told, 1);
}

TEST_F(Progress, WhatMakesNoSenseIsLeftOut) {
  EXPECT_EQ(read_progress("{\"t\":1,\"rank\":0}\nnonsense\n{\"t\":\"x\",\"rank\":0}\n{\"t\":1}\n{\"t\":1,\"rank\":-1}\n[]\n"
                          "{\"t\":2,\"rank\":1,\"step\":\"no\",\"loss\":2}\n{\"t\":1e999,\"rank\":0}")
                .size(),
            2u);
}

}  // namespace
}  // namespace phalanx::logs
