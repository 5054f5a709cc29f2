// Ranks that are started on file systems that answer, refuse and hang.
#include "agent/ranks/ranks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/fanotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "os/files.h"
#include "scratch.h"

namespace phalanx::agent {
namespace {

// A program whose execution the kernel asks us about; as long as nobody answers, exec does not return, as on a server that is gone.
class HangingProgram {
 public:
  HangingProgram() : path_(scratch::folder("ranks-test") + "/program") {
    std::error_code failed;
    std::filesystem::copy_file("/bin/true", path_, failed);
    ::chmod(path_.c_str(), 0755);
    asks_ = os::Fd(::fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY | O_CLOEXEC));
    good_ = asks_.valid() && ::fanotify_mark(asks_.get(), FAN_MARK_ADD, FAN_OPEN_EXEC_PERM, AT_FDCWD, path_.c_str()) == 0;
  }
  bool good() const { return good_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  os::Fd asks_;
  bool good_ = false;
};

// A folder on a FUSE file system whose server never answers: whoever enters it waits in the kernel, as with a file server that is gone.
class HangingFolder {
 public:
  HangingFolder() : path_(scratch::folder("ranks-test")), server_(::open("/dev/fuse", O_RDWR | O_CLOEXEC)) {
    const std::string options = "fd=" + std::to_string(server_.get()) + ",rootmode=40000,user_id=0,group_id=0";
    good_ = server_.valid() && ::mount("hangs", path_.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
  }
  ~HangingFolder() {
    server_.reset();  // ends the connection: whoever waits gets an error
    if (good_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  bool good() const { return good_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  os::Fd server_;
  bool good_ = false;
};

class RanksTest : public testing::Test {
 protected:
  void SetUp() override {
    base::Result<std::unique_ptr<os::Loop>> loop = os::Loop::create();
    base::Result<os::PipeEnds> pipe = os::make_pipe();
    ASSERT_TRUE(loop.ok() && pipe.ok());
    loop_ = std::move(loop).value();
    pipe_ = std::move(pipe).value();
    ASSERT_TRUE(os::set_nonblocking(pipe_.read.get()).ok());
    ASSERT_TRUE(os::set_nonblocking(pipe_.write.get()).ok());
    outbox_ = std::make_unique<Outbox>(*loop_, pipe_.write.get(), [] {}, [] {});
    outbox_->magic();
    ranks_ = std::make_unique<Ranks>(*loop_, *outbox_, os::milliseconds(400));
    ASSERT_TRUE(loop_->on_child([this](pid_t pid, int status) { ranks_->on_exit(pid, status); }).ok());
  }
  void TearDown() override {
    ranks_.reset();
    outbox_.reset();
  }
  void start(const std::string& program, const std::string& directory = "/") {
    wire::RankSpec spec;
    wire::JobSpec job;
    job.argv = {program};
    job.directory = directory;
    ranks_->start(spec, {{"PATH", "/usr/bin:/bin"}}, {job, program, "", ""}, {});
  }
  // The next frame of this kind that the ranks have for the launcher.
  template <typename Message>
  std::optional<Message> next() {
    for (os::Mono end = os::mono_now() + os::milliseconds(5000); os::mono_now() < end;) {
      longest_ = std::max(longest_, timed_poll());
      char bytes[4096];
      os::IoStep step = os::read_step(pipe_.read.get(), bytes, sizeof(bytes));
      if (step.kind == os::IoStep::kBytes) reader_.feed(std::string_view(bytes, step.bytes));
      for (;;) {
        base::Result<std::optional<wire::Frame>> frame = reader_.next();
        if (!frame.ok() || !frame->has_value()) break;
        if ((*frame)->type == Message::kType) return wire::decode<Message>((*frame)->payload).value();
      }
    }
    return std::nullopt;
  }
  os::nanoseconds timed_poll() {
    os::Mono begin = os::mono_now();
    loop_->poll(os::milliseconds(10));
    return os::mono_now() - begin;
  }

  std::unique_ptr<os::Loop> loop_;
  os::PipeEnds pipe_;
  std::unique_ptr<Outbox> outbox_;
  std::unique_ptr<Ranks> ranks_;
  wire::FrameReader reader_;
  os::nanoseconds longest_{0};  // that the loop was held up
};

TEST_F(RanksTest, StartedIsSaidWhenTheProgramRuns) {
  start("/bin/true");
  std::optional<wire::Started> started = next<wire::Started>();
  ASSERT_TRUE(started.has_value());
  EXPECT_TRUE(started->outcome.ok);
  EXPECT_GT(started->pid, 0u);
  std::optional<wire::Exited> exited = next<wire::Exited>();
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->status, 0u);
}

TEST_F(RanksTest, WhatCannotBeStartedNamesTheStep) {
  start("/bin/true", "/no/such/folder");
  std::optional<wire::Started> started = next<wire::Started>();
  ASSERT_TRUE(started.has_value());
  EXPECT_EQ(started->outcome.error.message, "chdir /no/such/folder: No such file or directory");
  start("/no/such/program");
  started = next<wire::Started>();
  ASSERT_TRUE(started.has_value());
  EXPECT_EQ(started->outcome.error.message, "exec /no/such/program: No such file or directory");
  EXPECT_FALSE(ranks_->any_alive());
}

TEST_F(RanksTest, AProgramOnAFileSystemThatHangsIsNamedAndHoldsNothingUp) {
  HangingProgram program;
  if (!program.good()) GTEST_SKIP() << "needs root and a kernel with fanotify permission events";
  start(program.path());
  std::optional<wire::Started> started = next<wire::Started>();
  ASSERT_TRUE(started.has_value());
  EXPECT_FALSE(started->outcome.ok);
  EXPECT_TRUE(
      started->outcome.error.message.starts_with("exec " + program.path() + ": no answer from its file system for 0 s; the process is"))
      << started->outcome.error.message;
  EXPECT_LT(longest_, os::milliseconds(300)) << "the loop waited for the exec";
  EXPECT_FALSE(ranks_->any_alive());
}

TEST_F(RanksTest, AWorkingDirectoryThatHangsIsNamedAndHoldsNothingUp) {
  HangingFolder folder;
  if (!folder.good()) GTEST_SKIP() << "needs root and FUSE";
  start("/bin/true", folder.path());
  start("/bin/true");  // of another rank, meanwhile
  std::optional<wire::Started> started = next<wire::Started>();
  ASSERT_TRUE(started.has_value());
  EXPECT_TRUE(started->outcome.ok) << started->outcome.error.message;
  started = next<wire::Started>();
  ASSERT_TRUE(started.has_value());
  EXPECT_FALSE(started->outcome.ok);
  EXPECT_TRUE(started->outcome.error.message.starts_with("chdir " + folder.path() + ": no answer from its file system for 0 s"))
      << started->outcome.error.message;
  EXPECT_LT(longest_, os::milliseconds(300)) << "the loop waited for the chdir";
  EXPECT_FALSE(ranks_->any_alive());
}

}  // namespace
}  // namespace phalanx::agent
