// A rank's figures out of a file: what the run itself writes, and nothing that others have put there.
#include "agent/ranks/progress_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "os/fd.h"
#include "scratch.h"

namespace phalanx::agent {
namespace {

class Progress : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pipe = os::make_pipe();
    ASSERT_TRUE(pipe.ok());
    events_ = std::move(pipe).value();
  }
  void start(const std::string& path) {
    auto started = ProgressReader::start(folder_, path, events_.write.get());
    ASSERT_TRUE(started.ok()) << started.error().message;
    reader_ = std::move(started).value();
    // It has seen what was there before once it waits for the next look.
    const std::string waits = "/proc/" + std::to_string(reader_->group()) + "/wchan";
    for (int i = 0; i < 2000; ++i) {
      std::ifstream file(waits);
      std::string in;
      if (std::getline(file, in); in.find("poll") != std::string::npos) return;
      ::usleep(1000);
    }
  }
  void write(const std::string& path, const std::string& text, std::ios::openmode how = std::ios::app) {
    std::filesystem::create_directories(std::filesystem::path(folder_ + "/" + path).parent_path());
    std::ofstream(folder_ + "/" + path, how) << text;
  }
  // What has been told up to the end of the rank.
  std::string told() {
    reader_->finish();
    EXPECT_EQ(reader_->group(), 0);
    return read();
  }
  std::string read(int wait = 0) {
    pollfd ready{events_.read.get(), POLLIN, 0};
    std::string text(4096, 0);
    if (::poll(&ready, 1, wait) != 1) return "";
    const ssize_t n = ::read(events_.read.get(), text.data(), text.size());
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return text;
  }
  static std::string line(int step) { return "{\"current_steps\": " + std::to_string(step) + ", \"total_steps\": 30, \"loss\": 0.5}\n"; }
  static std::string event(int step) {
    return "{\"v\":1,\"type\":\"progress\",\"step\":" + std::to_string(step) + ",\"total\":30,\"loss\":0.5}\n";
  }

  std::string folder_ = scratch::folder("progress-test");
  os::PipeEnds events_;
  std::unique_ptr<ProgressReader> reader_;
};

TEST_F(Progress, IsToldWhileTheRankRunsAndAtItsEnd) {
  start("out/trainer_log.jsonl");
  write("out/trainer_log.jsonl", line(5));
  EXPECT_EQ(read(5000), event(5));
  write("out/trainer_log.jsonl", line(10) + line(15));
  EXPECT_EQ(told(), event(15));
}

TEST_F(Progress, OfAnEarlierRunIsNotTold) {
  write("out/trainer_log.jsonl", line(20));
  start("out/trainer_log.jsonl");
  EXPECT_EQ(told(), "");
}

TEST_F(Progress, OfAFileThatGoesOnOrIsWrittenAnew) {
  write("a.jsonl", line(20));
  start("a.jsonl");
  write("a.jsonl", "{\"eval\": 1}\n");  // grown, but without a step of this run
  EXPECT_EQ(read(1500), "");
  write("a.jsonl", line(3), std::ios::trunc);
  EXPECT_EQ(told(), event(3));
}

TEST_F(Progress, OfTheFolderThatThisRunHasMade) {
  const std::string names = "epoch,step,loss\n", told_once = "{\"v\":1,\"type\":\"progress\",\"step\":10,\"loss\":1.5}\n";
  write("lightning_logs/version_9/metrics.csv", names + "0,99,1\n");
  start("lightning_logs/version_*/metrics.csv");
  write("lightning_logs/version_10/metrics.csv", names + "0,9,1.5\n");
  EXPECT_EQ(told(), told_once);
}

TEST_F(Progress, LinksAndThingsThatAreNoFilesAreLeftAlone) {
  const std::string elsewhere = scratch::folder("progress-test-elsewhere");
  std::ofstream(elsewhere + "/trainer_log.jsonl") << line(1);
  for (const char* what : {"link", "folder link", "pipe", "folder", "a stranger's"}) {
    std::filesystem::remove_all(folder_ + "/out");
    start("out/trainer_log.jsonl");
    const std::string path = folder_ + "/out/trainer_log.jsonl";
    if (what == std::string("folder link")) {
      std::filesystem::create_directory_symlink(elsewhere, folder_ + "/out");
    } else {
      std::filesystem::create_directory(folder_ + "/out");
      if (what == std::string("link")) std::filesystem::create_symlink(elsewhere + "/trainer_log.jsonl", path);
      if (what == std::string("pipe")) {
        EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
      }
      if (what == std::string("folder")) std::filesystem::create_directory(path);
      if (what == std::string("a stranger's")) {
        write("out/trainer_log.jsonl", line(1));
        if (::chown(path.c_str(), 12345, 12345) != 0) continue;  // only root can show it
      }
    }
    EXPECT_EQ(told(), "") << what;
  }
}

TEST_F(Progress, OfWhatIsNoFileOfAFramework) {
  for (const char* path : {"out", "a.txt", "../trainer_log.jsonl", "a/../../b.csv", "a*/b*/m.csv", "a/*.csv"}) {
    auto started = ProgressReader::start(folder_, path, events_.write.get());
    EXPECT_FALSE(started.ok()) << path;
  }
}

TEST_F(Progress, ALongFileIsReadFromItsEnd) {
  start("a.jsonl");
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += line(i % 30);
  write("a.jsonl", text + line(30));
  EXPECT_TRUE(told().ends_with(event(30)));
}

}  // namespace
}  // namespace phalanx::agent
