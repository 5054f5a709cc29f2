#include "logs/runs/rank_log.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "logs/runs/disk_files.h"
#include "os/files.h"

namespace phalanx::logs {
namespace {

using std::chrono::seconds;

class RankLogTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/phalanx-rank-log-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    path_ = folder_ + "/0.log";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  RankLog open() { return open(path_); }
  RankLog open(const std::string& path) { return {files_, files_.log(path, Form::kText, 0)}; }
  std::string content() { return os::read_file(path_, 1 << 24).value(); }
  std::string folder_, path_;
  std::vector<std::string> warnings_;
  DiskFiles files_{[this](const std::string& text) { warnings_.push_back(text); }};
};

os::Mono at(int64_t s) { return {s * 1'000'000'000}; }
std::string bar(int step) { return "train: " + std::to_string(step) + "%|##| " + std::to_string(step) + "/100 [00:12<00:15, 35.9it/s]"; }

TEST_F(RankLogTest, LinesAreWrittenByIdle) {
  RankLog log = open();
  log.lines("one\ntwo\n");
  EXPECT_FALSE(os::exists(path_));
  log.idle();
  EXPECT_EQ(content(), "one\ntwo\n");
  struct stat s{};
  ASSERT_EQ(::stat(path_.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0600u);
}

TEST_F(RankLogTest, BigAndSmallStayInOrder) {
  RankLog log = open();
  std::string expected;
  for (size_t i = 0; i < 400; ++i) {
    std::string text(i * 149 % 40000, static_cast<char>('a' + i % 26));
    text += '\n';
    log.lines(text);
    expected += text;
  }
  log.close();
  EXPECT_TRUE(content() == expected);
}

TEST_F(RankLogTest, ARestartedRankGoesOnInItsLog) {
  {
    RankLog log = open();
    log.lines("first\n");
    log.close();
  }
  {
    RankLog log = open();
    log.lines("second\n");
    log.close();
  }
  EXPECT_EQ(content(), "first\nsecond\n");
}

TEST_F(RankLogTest, ABarLeavesOneLineAPeriodAndItsLastState) {
  RankLog log = open();
  for (int i = 0; i < 70; ++i) log.progress(bar(i), at(i));
  log.close();
  EXPECT_EQ(content(), bar(0) + "\n" + bar(30) + "\n" + bar(60) + "\n" + bar(69) + "\n");
}

TEST_F(RankLogTest, ABarThatEndsAsALineIsThereOnce) {
  RankLog log = open();
  log.progress(bar(0), at(0));
  log.progress(bar(50), at(1));
  log.progress(bar(100), at(2));
  log.lines(bar(100) + "\nnext\n");
  log.close();
  EXPECT_EQ(content(), bar(0) + "\n" + bar(100) + "\nnext\n");
}

TEST_F(RankLogTest, ACompleteBarWaitsForItsLastLineButNotForLong) {
  RankLog log = open();
  log.progress(bar(0), at(0));
  log.progress(bar(100), at(1));
  log.idle();
  EXPECT_EQ(content(), bar(0) + "\n");
  log.idle();
  EXPECT_EQ(content(), bar(0) + "\n" + bar(100) + "\n");
  log.progress(bar(0), at(2));
  log.progress("train: 100%|##| 100/100 [00:12<00:00, 35.9it/s]", at(2));
  log.lines("train: 100%|##| 100/100 [00:12<00:00, 36.1it/s]\n");
  log.close();
  EXPECT_EQ(content(), bar(0) + "\n" + bar(100) + "\ntrain: 100%|##| 100/100 [00:12<00:00, 36.1it/s]\n");
}

TEST_F(RankLogTest, TheFinalLineSupersedesWhatWaits) {
  RankLog log = open();
  log.progress(bar(0), at(0));
  log.progress(bar(98), at(1));
  log.lines(bar(99) + "\n");
  log.close();
  EXPECT_EQ(content(), bar(0) + "\n" + bar(99) + "\n");
}

TEST_F(RankLogTest, BarsThatAlternateAreToldApart) {
  RankLog log = open();
  for (int i = 0; i < 20; ++i) {
    log.progress("outer: " + std::to_string(i) + "/40", at(i));
    log.progress("inner: " + std::to_string(i) + "/40", at(i));
  }
  log.close();
  EXPECT_EQ(content(), "outer: 0/40\ninner: 0/40\nouter: 19/40\ninner: 19/40\n");
}

TEST_F(RankLogTest, ManyBarsAreBounded) {
  RankLog log = open();
  std::string expected;
  for (char name = 'a'; name < 'z'; ++name) {
    log.progress(std::string(3, name) + " 1/9", at(0));
    expected += std::string(3, name) + " 1/9\n";
  }
  log.close();
  EXPECT_EQ(content(), expected);
}

TEST_F(RankLogTest, EscapesAreTakenOutOfBarsOnly) {
  RankLog log = open();
  log.lines("\x1b[31mred\x1b[0m\n");
  log.progress("\x1b[32mstep 1/3\x1b[0m", at(0));
  log.close();
  EXPECT_EQ(content(), "\x1b[31mred\x1b[0m\nstep 1/3\n");
}

TEST_F(RankLogTest, AFullDiskIsToldOnceAndTheRunGoesOn) {
  RankLog log = open("/dev/full");
  for (int i = 0; i < 10; ++i) {
    log.lines("text\n");
    log.idle();
  }
  log.lines(std::string(100000, 'x') + "\n");
  log.close();
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0], "/dev/full is incomplete from here on: No space left on device");
  EXPECT_EQ(files_.lost_bytes(), 50u + 100001u);
}

// A file size limit stands for a disk that fills in the middle of a line and has room again later.
TEST_F(RankLogTest, WhenThereIsRoomAgainTheLogSaysWhatIsMissing) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  RankLog log = open();
  rlimit tight{10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  log.lines("0123456789abc\n");
  log.idle();
  log.lines("lost\n");
  log.idle();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  log.lines("again\n");
  log.close();
  EXPECT_EQ(content(), "0123456789\n[phalanx: 9 B of this log were lost here: File too large]\nagain\n");
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(RankLogTest, AFolderThatIsMissingIsTold) {
  RankLog log = open(folder_ + "/none/0.log");
  log.lines("text\n");
  log.close();
  EXPECT_EQ(warnings_, std::vector<std::string>{folder_ + "/none/0.log is incomplete from here on: No such file or directory"});
  EXPECT_EQ(files_.lost_bytes(), 5u);
}

TEST_F(RankLogTest, ABoundedLogKeepsItsNewestLines) {
  FileId file = files_.log(path_, Form::kText, 1000);
  auto both = [&] { return os::read_file(path_ + ".1", 1 << 24).value() + content(); };
  std::string line = "0123456789 0123456789 012345678\n";  // 32 bytes
  for (int i = 0; i < 20; ++i) files_.append(file, line);
  std::string twice = both();
  EXPECT_NE(twice.find("[phalanx: the earlier part of this log is in 0.log.1]\n"), std::string::npos);
  EXPECT_EQ(std::count(twice.begin(), twice.end(), '\n'), 21) << "nothing is lost yet";
  std::string flood;
  for (int i = 0; i < 1000; ++i) flood += "line " + std::to_string(i) + "\n";
  files_.append(file, flood);
  std::string text = both();
  EXPECT_LE(text.size(), 1000u + 64);
  EXPECT_TRUE(text.ends_with("line 999\n"));
  EXPECT_NE(text.find(" of this log were removed; it continues after 0.log.1]\n"), std::string::npos);
  size_t first = text.find("line ");
  int number = std::stoi(text.substr(first + 5));
  for (; number < 1000; ++number) EXPECT_NE(text.find("line " + std::to_string(number) + "\n"), std::string::npos) << "no gap";
  EXPECT_EQ(files_.lost_bytes(), 0u);
}

}  // namespace
}  // namespace phalanx::logs
