#include "logs/runs/log_times.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/text.h"
#include "logs/runs/disk_files.h"
#include "logs/runs/rank_log.h"
#include "os/clock.h"
#include "os/files.h"

namespace phalanx::logs {
namespace {

class LogTimesTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/phalanx-log-times-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string read(const std::string& name) {
    base::Result<std::string> text = os::read_file(folder_ + "/" + name, 1 << 24);
    return text.ok() ? *text : "";
  }
  LogTimes times(const std::string& name = "0.times") {
    base::Result<std::optional<os::Fd>> file = os::open_regular_below(folder_, name);
    return LogTimes(file.ok() && *file ? **std::move(file) : os::Fd());
  }
  void write(const std::string& text) { ASSERT_TRUE(os::write_file_atomic(folder_ + "/0.times", text, 0600).ok()); }
  std::string folder_;
  DiskFiles files_{nullptr};
};

TEST_F(LogTimesTest, EachPieceHasTheTimeOfItsMark) {
  const FileId log = files_.log(folder_ + "/0.log", Form::kText, 0);
  const TimeMark first[] = {{0, 1000}, {4, 1500}};
  files_.append_timed(log, "one\ntwo\n", first);
  const TimeMark second[] = {{0, 2000}};
  files_.append_timed(log, "three\n", second);
  EXPECT_EQ(read("0.times"), "0 1000\n4 1500\n8 2000\n");
  LogTimes read = times();
  EXPECT_EQ(read.ms_at(0), 1000);
  EXPECT_EQ(read.ms_at(4), 1500);
  EXPECT_EQ(read.ms_at(7), 1500);
  EXPECT_EQ(read.ms_at(8), 2000);
  EXPECT_EQ(read.ms_at(999), 2000);
}

TEST_F(LogTimesTest, TheFileIsFollowedWhileItGrows) {
  const FileId log = files_.log(folder_ + "/0.log", Form::kText, 0);
  const TimeMark first[] = {{0, 1000}};
  files_.append_timed(log, "one\n", first);
  LogTimes read = times();
  EXPECT_EQ(read.ms_at(0), 1000);
  const TimeMark later[] = {{0, 3000}};
  files_.append_timed(log, "two\n", later);
  EXPECT_EQ(read.ms_at(4), 3000);
}

TEST_F(LogTimesTest, ATurnedLogTakesItsTimesAlong) {
  const FileId log = files_.log(folder_ + "/0.log", Form::kText, 200);
  const std::string line = "0123456789 0123456789 012345678\n";  // 32 bytes
  for (int64_t i = 0; i < 6; ++i) {
    const TimeMark mark[] = {{0, 1000 + i}};
    files_.append_timed(log, line, mark);
  }
  EXPECT_EQ(read("0.times.1"), "0 1000\n32 1001\n64 1002\n96 1003\n");
  const std::string now = read("0.log");
  const std::string fifth = std::to_string(now.find(line));
  EXPECT_TRUE(read("0.times").starts_with(fifth + " 1004\n")) << read("0.times");
  EXPECT_EQ(times().ms_at(0), std::nullopt) << "our own mark has no time";
}

TEST_F(LogTimesTest, WhatWasLostDoesNotShiftTheTimes) {
  const FileId log = files_.log(folder_ + "/0.log", Form::kText, 0);
  const TimeMark first[] = {{0, 1000}};
  files_.append_timed(log, "one\n", first);
  files_.missing(log, 7, "No space left on device");
  const TimeMark later[] = {{0, 5000}};
  files_.append_timed(log, "two\n", later);
  LogTimes read = times();
  const std::string text = this->read("0.log");
  EXPECT_EQ(read.ms_at(0), 1000);
  EXPECT_EQ(read.ms_at(text.find("two")), 5000) << text;
}

TEST_F(LogTimesTest, TheTimesAreNeverMuchLargerThanTheLog) {
  const FileId log = files_.log(folder_ + "/0.log", Form::kText, 0);
  for (int64_t i = 0; i < 10'000; ++i) {
    const TimeMark mark[] = {{0, 1'763'923'395'000 + i * 10}};
    files_.append_timed(log, "\n", mark);
  }
  EXPECT_LE(read("0.times").size(), 10'000 + kLeastTimes);
  EXPECT_EQ(read("0.log").size(), 10'000U);
}

// From a shared folder anything may come.
TEST_F(LogTimesTest, ADamagedFileGivesTheTimesThatCanBeRead) {
  for (const char* text : {"", "\n\n", "x y\n", "0\n", "0 \n", "-1 5\n", "0 -5\n", "0 99999999999999999999\n", "0 253402300800000\n"}) {
    write(text);
    EXPECT_EQ(times().ms_at(10), std::nullopt) << text;
  }
  write("0 1000\n" + std::string(200'000, 'x') + "\n50 2000\n20 1500\nhalf");
  LogTimes read = times();
  EXPECT_EQ(read.ms_at(10), 1000);
  EXPECT_EQ(read.ms_at(60), 2000);
  EXPECT_EQ(times("none").ms_at(0), std::nullopt);
}

TEST_F(LogTimesTest, ARankLogNotesWhenItsLinesCame) {
  const int64_t before = os::wall_now_ns() / 1'000'000;
  RankLog log(files_, files_.log(folder_ + "/0.log", Form::kText, 0));
  log.lines("one\n");
  ::usleep(30'000);
  log.lines("two\n");
  log.lines("three\n");
  log.lines(std::string(40'000, 'x') + "\n");
  log.close();
  LogTimes read = times();
  const std::optional<int64_t> one = read.ms_at(0), two = read.ms_at(4), three = read.ms_at(8), large = read.ms_at(14);
  ASSERT_TRUE(one && two && three && large) << this->read("0.times");
  EXPECT_GE(*one, before);
  EXPECT_GE(*two - *one, 30);
  EXPECT_LE(*three - *two, 1000);
  EXPECT_GE(*large, *three);
}

}  // namespace
}  // namespace phalanx::logs
