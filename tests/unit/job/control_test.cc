#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "job/control/client.h"
#include "job/control/server.h"
#include "no_descriptors.h"
#include "os/local_socket.h"

namespace phalanx::job {
namespace {

constexpr const char* kId = "20261121-073102-a3f9";

class Control : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    auto loop = os::Loop::create();
    ASSERT_TRUE(loop.ok());
    loop_ = std::move(loop).value();
    ControlServer::Handlers handlers;
    handlers.status = [] { return std::string("{\"v\":1}"); };
    handlers.catch_up = [] { return std::string(); };
    handlers.look = [this] { ++looks_; };
    handlers.stop = [this](std::optional<os::milliseconds> grace, bool kill) {
      grace_ = grace;
      kill_ = kill;
      server_->talk("stopping");  // as the supervisor does, from within the call
    };
    auto server = ControlServer::open(*loop_, folder_, kId, std::move(handlers));
    ASSERT_TRUE(server.ok()) << server.error().render();
    server_ = std::move(server).value();
  }
  void TearDown() override {
    server_.reset();
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/control"));
    std::filesystem::remove_all(folder_);
  }
  std::unique_ptr<ControlClient> client() {
    ControlClient::Handlers handlers;
    handlers.frame = [this](const wire::Frame& frame) {
      seen_.push_back(frame.type);
      bytes_ += frame.payload.size();
      if (frame.type == wire::FrameType::kDropped) dropped_ += wire::decode<wire::Dropped>(frame.payload)->bytes;
    };
    handlers.end = [this] { ended_ = true; };
    auto made = ControlClient::connect(*loop_, folder_, kId, std::move(handlers));
    EXPECT_TRUE(made.ok());
    return std::move(made).value();
  }
  template <typename Condition>
  bool until(Condition condition) {
    os::Mono deadline = os::mono_now() + os::milliseconds(5000);
    while (!condition() && os::mono_now() < deadline) loop_->poll(os::milliseconds(50));
    return condition();
  }
  bool saw(wire::FrameType type) const { return std::find(seen_.begin(), seen_.end(), type) != seen_.end(); }

  std::string folder_ = "/tmp/phalanx-control-XXXXXX";
  std::unique_ptr<os::Loop> loop_;
  std::unique_ptr<ControlServer> server_;
  std::optional<os::milliseconds> grace_;
  bool kill_ = false, ended_ = false;
  int looks_ = 0;
  std::vector<wire::FrameType> seen_;
  size_t bytes_ = 0;
  uint64_t dropped_ = 0;
};

TEST_F(Control, IsPrivate) {
  struct stat s{};
  ASSERT_EQ(::stat((folder_ + "/control").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0600u);
}

// Whoever may write to a run's folder can put a socket there. Neither side speaks to another user.
TEST_F(Control, NeitherSideSpeaksToAnotherUser) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to be a second user";
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  ASSERT_EQ(::chmod((folder_ + "/control").c_str(), 0666), 0);
  os::PipeEnds ready = os::make_pipe().value(), go = os::make_pipe().value();
  pid_t other = ::fork();
  if (other == 0) {
    if (::setresuid(61'202, 61'202, 61'202) != 0) ::_exit(1);
    auto listener = os::listen_local(folder_, "planted");
    if (!listener.ok() || ::chmod((folder_ + "/planted").c_str(), 0666) != 0) ::_exit(2);
    // The launcher is root, whom anyone may connect to. It closes at once.
    auto to_launcher = os::connect_local(folder_, "control");
    if (!to_launcher.ok() || ::write(ready.write.get(), "r", 1) != 1) ::_exit(3);
    char byte = 0;
    if (::read(go.read.get(), &byte, 1) != 1) ::_exit(4);
    ::_exit(::read(to_launcher->get(), &byte, 1) == 0 ? 0 : 5);
  }
  char byte = 0;
  ready.write.reset();
  ASSERT_EQ(::read(ready.read.get(), &byte, 1), 1);
  auto planted = os::connect_local(folder_, "planted");
  EXPECT_FALSE(planted.ok());
  EXPECT_EQ(planted.ok() ? "" : planted.error().message, folder_ + "/planted belongs to another user");
  for (int i = 0; i < 5; ++i) loop_->poll(os::milliseconds(20));
  EXPECT_EQ(server_->clients(), 0u);
  ASSERT_EQ(::write(go.write.get(), "g", 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
}

// The answer to a look comes later, once, and to no one else.
TEST_F(Control, ALookIsAnsweredWhenTheHostsHaveAnswered) {
  auto c = client();
  c->ask({.wish = wire::Wish::kLook});
  ASSERT_TRUE(until([this] { return looks_ == 1 && saw(wire::FrameType::kRunStatus); }));
  EXPECT_FALSE(saw(wire::FrameType::kLooked));
  server_->looked("{\"v\":1}");
  ASSERT_TRUE(until([this] { return saw(wire::FrameType::kLooked); }));
  server_->looked("{\"v\":1}");
  server_->talk("not for it");
  for (int i = 0; i < 3; ++i) loop_->poll(os::milliseconds(10));
  EXPECT_EQ(std::count(seen_.begin(), seen_.end(), wire::FrameType::kLooked), 1);
  EXPECT_FALSE(saw(wire::FrameType::kTalk));
}

// A client that waits in the backlog while there are no descriptors left costs no processor time, and is served afterwards.
TEST_F(Control, OutOfDescriptorsItLooksAwayForAMoment) {
  auto c = client();
  {
    NoDescriptors none;
    EXPECT_LT(wakeups(*loop_), 30);
    EXPECT_EQ(server_->clients(), 0u);
  }
  c->ask({.wish = wire::Wish::kStatus});
  EXPECT_TRUE(until([&] { return saw(wire::FrameType::kRunStatus); }));
}

TEST_F(Control, AStopArrivesAndIsHeardOf) {
  auto c = client();
  c->ask({.wish = wire::Wish::kStop, .grace_ms = 250, .kill = true});
  ASSERT_TRUE(until([&] { return saw(wire::FrameType::kTalk); }));
  EXPECT_TRUE(saw(wire::FrameType::kRunStatus));
  EXPECT_EQ(grace_, os::milliseconds(250));
  EXPECT_TRUE(kill_);
  server_->end(3, os::milliseconds(500));
  ASSERT_TRUE(until([&] { return ended_; }));
  EXPECT_EQ(seen_.back(), wire::FrameType::kRunEnded);
}

TEST_F(Control, WhoDoesNotReadIsDroppedNotWaitedFor) {
  auto c = client();
  c->ask({.wish = wire::Wish::kFollow});
  ASSERT_TRUE(until([&] { return saw(wire::FrameType::kRunStatus); }));
  wire::Output output;
  std::string lines(64 << 10, 'x');
  output.data = lines;
  os::Mono begin = os::mono_now();
  for (int i = 0; i < 1000; ++i) server_->output(output);
  EXPECT_LT(os::mono_now() - begin, os::milliseconds(2000));
  ASSERT_TRUE(until([&] { return dropped_ > 0; }));
  server_->end(0, os::milliseconds(500));
  ASSERT_TRUE(until([&] { return ended_; }));
  size_t shown = static_cast<size_t>(std::count(seen_.begin(), seen_.end(), wire::FrameType::kOutput)) * lines.size();
  EXPECT_EQ(shown + dropped_, 1000 * lines.size()) << "what is missing is told, to the byte";
}

TEST_F(Control, NonsenseIsClosed) {
  std::string magic(wire::kStreamMagic), good;
  ASSERT_TRUE(wire::encode(good, wire::Ask{}).ok());
  std::string wrong_type, too_large, bad_wish;
  ASSERT_TRUE(wire::put_frame(wrong_type, wire::FrameType::kSignal, "\x09").ok());
  ASSERT_TRUE(wire::put_frame(too_large, wire::FrameType::kAsk, std::string(1 << 16, 'x')).ok());
  ASSERT_TRUE(wire::encode(bad_wish, wire::Ask{.wish = static_cast<wire::Wish>(9)}).ok());
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.0\r\n\r\n") + magic, magic + wrong_type, magic + too_large, magic + bad_wish}) {
    auto fd = os::connect_local(folder_, "control");
    ASSERT_TRUE(fd.ok());
    ASSERT_TRUE(os::write_all(fd->get(), bytes, "nonsense").ok());
    char buffer[4096];
    EXPECT_TRUE(until([&] {
      os::IoStep step = os::read_step(fd->get(), buffer, sizeof(buffer));
      return step.kind == os::IoStep::kEnd || step.kind == os::IoStep::kError;
    })) << bytes;
  }
  EXPECT_TRUE(until([&] { return server_->clients() == 0; }));
  auto c = client();
  c->ask({});
  EXPECT_TRUE(until([&] { return saw(wire::FrameType::kRunStatus); })) << "it answers as before";
}

TEST_F(Control, ManyWhoAskNothingGiveWay) {
  std::vector<os::Fd> held;
  for (size_t i = 0; i < 3 * ControlServer::kMostClients; ++i) {
    auto fd = os::connect_local(folder_, "control");
    ASSERT_TRUE(fd.ok());
    held.push_back(std::move(fd).value());
    loop_->poll(os::milliseconds(0));
  }
  EXPECT_LE(server_->clients(), ControlServer::kMostClients);
  auto c = client();
  c->ask({});
  EXPECT_TRUE(until([&] { return saw(wire::FrameType::kRunStatus); }));
}

TEST(LocalSocket, APathLongerThanANameMayBe) {
  std::string folder = "/tmp/phalanx-long-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::string deep = folder + "/" + std::string(120, 'd');
  std::filesystem::create_directory(deep);
  EXPECT_FALSE(os::connect_local(deep, "control").ok());
  {
    auto listener = os::listen_local(deep, "control");
    ASSERT_TRUE(listener.ok()) << listener.error().render();
    EXPECT_TRUE(os::connect_local(deep, "control").ok());
    EXPECT_TRUE(os::accept_local(listener->get())->valid());
  }
  EXPECT_FALSE(os::connect_local(deep, "control").ok()) << "nobody listens any more";
  EXPECT_TRUE(os::listen_local(deep, "control").ok()) << "what a dead process has left is replaced";
  std::filesystem::remove_all(folder);
}

TEST(AskStatus, ALauncherThatStandsStillIsNotWaitedForLong) {
  std::string folder = "/tmp/phalanx-mute-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  EXPECT_EQ(ask_status(folder, kId, os::milliseconds(100)).error().kind, base::ErrorKind::kUnreachable);
  auto listener = os::listen_local(folder, "control");
  ASSERT_TRUE(listener.ok());
  EXPECT_EQ(ask_status(folder, kId, os::milliseconds(100)).error().kind, base::ErrorKind::kTimeout);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace phalanx::job
