// A FIFO that nobody reads stands for a disk that hangs: whoever opens it for writing waits in the kernel until it is opened for reading.
#include "logs/runs/writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "os/clock.h"
#include "os/files.h"
#include "scratch.h"

namespace phalanx::logs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class WriterTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = scratch::folder("writer");
    ASSERT_FALSE(folder_.empty());
    loop_ = os::Loop::create().value();
  }
  void begin(Writer::Options options = {}) {
    Writer::Handlers handlers{[this](const std::string& text) { warnings_.push_back(text); }, [this] { ++behind_; },
                              [this](uint64_t lost) { abreast_.push_back(lost); }};
    auto started = Writer::start(*loop_, std::move(options), std::move(handlers));
    ASSERT_TRUE(started.ok()) << started.error().render();
    writer_ = std::move(started).value();
  }
  // A path whose disk hangs until thaw().
  std::string frozen(const std::string& name) {
    std::string path = folder_ + "/" + name;
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    return path;
  }
  static os::Fd thaw(const std::string& path) { return os::Fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)); }
  // What has come until `end` stands in it.
  std::string read_until(const os::Fd& fd, std::string_view end, milliseconds most = seconds(5)) {
    std::string text;
    char buffer[65536];
    for (os::Mono last = os::mono_now() + most; os::mono_now() < last && text.find(end) == std::string::npos;) {
      ssize_t n = ::read(fd.get(), buffer, sizeof(buffer));
      if (n > 0) text.append(buffer, static_cast<size_t>(n));
      else loop_->poll(milliseconds(2));
    }
    return text;
  }
  std::string content(const std::string& name) { return os::read_file(folder_ + "/" + name, 1 << 24).value(); }

  std::string folder_;
  std::unique_ptr<os::Loop> loop_;
  std::unique_ptr<Writer> writer_;
  std::vector<std::string> warnings_;
  int behind_ = 0;
  std::vector<uint64_t> abreast_;
};

TEST_F(WriterTest, EverythingIsWrittenInOrder) {
  begin();
  FileId log = writer_->log(folder_ + "/0.log", Form::kText, 0);
  std::string expected;
  for (int i = 0; i < 20'000; ++i) {
    std::string line = "line " + std::to_string(i) + std::string(static_cast<size_t>(i % 97), 'x') + "\n";
    writer_->append(log, line);
    expected += line;
    if (i % 500 == 0) loop_->poll(milliseconds(0));
  }
  writer_->replace(folder_ + "/facts/0.json", "{}");
  ASSERT_TRUE(writer_->settle(seconds(20)));
  EXPECT_EQ(content("0.log"), expected);
  EXPECT_EQ(content("facts/0.json"), "{}");
  struct stat s{};
  ASSERT_EQ(::stat((folder_ + "/0.log").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0600u);
  writer_->remove(folder_ + "/0.log");
  ASSERT_TRUE(writer_->settle(seconds(20)));
  EXPECT_FALSE(os::exists(folder_ + "/0.log"));
  EXPECT_EQ(writer_->lost_bytes(), 0u);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(WriterTest, ADiskThatHangsCostsWhatDoesNotFitAndNoTime) {
  std::string path = frozen("0.log");
  begin({.queue_bytes = 1 << 20});
  FileId log = writer_->log(path, Form::kText, 0);
  FileId events = writer_->log(folder_ + "/events.jsonl", Form::kJsonLines, 0);
  std::string line(1023, 'x');
  line += '\n';
  os::Mono began = os::mono_now();
  for (int i = 0; i < 8192; ++i) writer_->append(log, line);
  writer_->append(events, "{\"event\":\"end\"}\n");
  writer_->replace(folder_ + "/run.json", "{\"state\":\"ended\"}");
  loop_->poll(milliseconds(0));
  EXPECT_LT(os::mono_now() - began, milliseconds(1000));
  EXPECT_EQ(behind_, 1);
  EXPECT_GT(writer_->lost_bytes(), 6u << 20);
  EXPECT_FALSE(writer_->settle(milliseconds(50)));
  uint64_t lost = writer_->lost_bytes();

  os::Fd disk = thaw(path);
  std::string text = read_until(disk, "could not keep up]\n");
  EXPECT_NE(text.find(base::format_bytes(lost) + " of this log were lost here: the disk could not keep up]\n"), std::string::npos)
      << text.substr(text.size() - std::min<size_t>(text.size(), 200));
  EXPECT_EQ(abreast_, std::vector<uint64_t>{lost});
  writer_->append(log, "again\n");
  EXPECT_NE(read_until(disk, "again\n").find("again\n"), std::string::npos);
  ASSERT_TRUE(writer_->settle(seconds(5)));
  EXPECT_EQ(content("events.jsonl"), "{\"event\":\"end\"}\n") << "records have room of their own";
  EXPECT_EQ(content("run.json"), "{\"state\":\"ended\"}");
}

TEST_F(WriterTest, WhatIsQueuedIsWrittenWhenTheDiskTakesItAgainAlsoAfterTheEnd) {
  std::string path = frozen("0.log");
  begin();
  FileId log = writer_->log(path, Form::kText, 0);
  std::string line(1023, 'x');
  line += '\n';
  for (int i = 0; i < 4096; ++i) writer_->append(log, line);
  writer_->replace(folder_ + "/run.json", "{\"state\":\"ended\"}");
  os::Mono began = os::mono_now();
  writer_.reset();
  EXPECT_LT(os::mono_now() - began, milliseconds(1000));
  os::Fd disk = thaw(path);
  size_t bytes = 0;
  char buffer[65536];
  for (os::Mono last = os::mono_now() + seconds(10); os::mono_now() < last && !os::exists(folder_ + "/run.json");) {
    ssize_t n = ::read(disk.get(), buffer, sizeof(buffer));
    if (n > 0) bytes += static_cast<size_t>(n);
    else loop_->poll(milliseconds(1));
  }
  // run.json is replaced when the log is written, which may be before it is read here.
  for (ssize_t n; (n = ::read(disk.get(), buffer, sizeof(buffer))) > 0;) bytes += static_cast<size_t>(n);
  EXPECT_EQ(bytes, 4u << 20);
  EXPECT_EQ(content("run.json"), "{\"state\":\"ended\"}");
}

TEST_F(WriterTest, AFullDiskIsToldOnceAndCounted) {
  begin();
  FileId log = writer_->log("/dev/full", Form::kText, 0);
  for (int i = 0; i < 10; ++i) writer_->append(log, "text\n");
  ASSERT_TRUE(writer_->settle(seconds(5)));
  EXPECT_EQ(writer_->lost_bytes(), 50u);
  EXPECT_EQ(warnings_, std::vector<std::string>{"/dev/full is incomplete from here on: No space left on device"});
}

TEST_F(WriterTest, TheLockIsHeldUntilEverythingIsWritten) {
  std::string path = folder_ + "/lock";
  os::Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  begin({.lock = std::move(lock)});
  lock.reset();
  os::Fd other(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_NE(::flock(other.get(), LOCK_SH | LOCK_NB), 0);
  writer_.reset();
  EXPECT_EQ(::flock(other.get(), LOCK_SH), 0) << "free when the process has ended";
}

// In a folder of logs that others may write to, a run's folder can be moved away, and a link put in its place.
TEST_F(WriterTest, WhatIsWrittenFollowsTheFolderAndNotItsName) {
  const std::string run = folder_ + "/run", away = folder_ + "/away", other = folder_ + "/other";
  for (const std::string& made : {run + "/ranks", other + "/ranks"}) ASSERT_TRUE(os::make_folders(made).ok());
  begin({.reserve = run + "/reserve", .folder = os::Fd(::open(run.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), .folder_path = run});
  FileId before = writer_->log(run + "/ranks/0.log", Form::kText, 64);
  writer_->append(before, std::string(40, 'a') + "\n");
  ASSERT_TRUE(writer_->settle(seconds(5)));
  ASSERT_EQ(::rename(run.c_str(), away.c_str()), 0);
  ASSERT_EQ(::symlink(other.c_str(), run.c_str()), 0);
  ASSERT_TRUE(os::write_file_atomic(other + "/reserve", "mine").ok());
  FileId after = writer_->log(run + "/ranks/1.log", Form::kText, 0);
  writer_->append(before, "turned\n");
  writer_->append(after, "later\n");
  writer_->replace(run + "/run.json", "{}");
  writer_->replace(run + "/facts/0.json", "{}");
  writer_->remove(run + "/reserve");
  ASSERT_TRUE(writer_->settle(seconds(5)));
  EXPECT_EQ(warnings_, std::vector<std::string>{});
  for (const char* name : {"/ranks/0.log", "/ranks/0.log.1", "/ranks/1.log", "/run.json", "/facts/0.json"}) {
    EXPECT_TRUE(os::exists(away + name)) << name;
    EXPECT_FALSE(os::exists(other + name)) << name;
  }
  EXPECT_TRUE(os::exists(other + "/reserve"));
}

}  // namespace
}  // namespace phalanx::logs
