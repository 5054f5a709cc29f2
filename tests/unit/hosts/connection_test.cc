// A connection by a session that is asked for at a control socket, and what becomes of it where that is refused or cut.
#include "hosts/connect/connection.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "os/local_socket.h"
#include "scratch.h"
#include "wire/messages.h"

namespace phalanx::hosts {
namespace {

using os::milliseconds;

const std::string kHello("\0\0\0\x08\0\0\0\x01\0\0\0\x04", 12);
const std::string kOpened("\0\0\0\x0c\x80\0\0\x06\0\0\0\0\0\0\0\x01", 16);
const std::string kFailure("\0\0\0\x0c\x80\0\0\x03\0\0\0\0\0\0\0\0", 16);
const std::string kExit7("\0\0\0\x0c\x80\0\0\x04\0\0\0\x01\0\0\0\x07", 16);

std::string stream() {
  std::string frame;
  EXPECT_TRUE(wire::encode(frame, wire::Pong{}).ok());
  return std::string(wire::kStreamMagic) + frame;
}

class Sessions : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = scratch::folder("connection");
    listener_ = std::move(os::listen_local(folder_, "socket").value());
    loop_ = os::Loop::create().value();
    ASSERT_TRUE(loop_->on_child([this](pid_t pid, int status) { connection_->on_child(pid, status); }).ok());
  }
  void TearDown() override {
    if (master_.joinable()) master_.join();
  }
  // An ssh that keeps a connection: says `answer`, writes `bytes` to the session's stdout, and last `then`, once the other side is gone or
  // after `hold`.
  void keep(const std::string& answer, const std::string& bytes, milliseconds hold, const std::string& then = "") {
    master_ = std::thread([=, listener = listener_.get()] {
      pollfd waiting{listener, POLLIN, 0};
      ::poll(&waiting, 1, 5000);
      const os::Fd peer = os::accept_local(listener).value();
      for (int packet = 0; packet < 2; ++packet) hear_packet(peer.get());
      os::Fd fds[3];
      for (os::Fd& fd : fds) fd = receive(peer.get());
      ::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      ASSERT_EQ(::write(fds[1].get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
      pollfd end{peer.get(), POLLIN, 0};
      ::poll(&end, 1, static_cast<int>(hold.count()));
      ::send(peer.get(), then.data(), then.size(), MSG_NOSIGNAL);
    });
  }
  // No byte more: the next ones carry descriptors.
  static void hear_packet(int peer) {
    auto hear = [&](char* into, size_t size) {
      for (size_t got = 0; got < size;) {
        pollfd waiting{peer, POLLIN, 0};
        ::poll(&waiting, 1, 2000);
        const ssize_t n = ::recv(peer, into + got, size - got, 0);
        ASSERT_GT(n, 0);
        got += static_cast<size_t>(n);
      }
    };
    unsigned char length[4];
    hear(reinterpret_cast<char*>(length), sizeof(length));
    std::string body(size_t{length[2]} << 8 | length[3], '\0');
    hear(body.data(), body.size());
  }
  static os::Fd receive(int peer) {
    pollfd waiting{peer, POLLIN, 0};
    ::poll(&waiting, 1, 2000);
    return os::receive_descriptor(peer);
  }
  void open(const std::string& instead) {
    connection_ = std::make_unique<Connection>(*loop_, payload_,
                                               Connection::Handlers{[this](const wire::Frame&) { ++frames_; },
                                                                    [this](const Death& death, bool started) {
                                                                      ++ends_;
                                                                      death_ = death;
                                                                      started_ = started;
                                                                    }});
    Launch launch{{instead.empty() ? "no-such-program" : "sh", "-c", instead}};
    launch.session = SessionRequest{folder_, "socket", "exec agent", {}};
    ASSERT_TRUE(connection_->open(launch).ok());
    EXPECT_TRUE(connection_->begun());
  }
  template <typename Condition>
  bool until(Condition condition) {
    const os::Mono began = os::mono_now();
    while (!condition() && os::mono_now() - began < milliseconds(5000)) loop_->poll(milliseconds(20));
    return condition();
  }

  std::string folder_;
  os::Fd listener_;
  std::unique_ptr<os::Loop> loop_;
  Payload payload_{{}};
  std::unique_ptr<Connection> connection_;
  std::thread master_;
  int frames_ = 0, ends_ = 0;
  Death death_;
  bool started_ = false;
};

TEST_F(Sessions, CarryFramesAndEndWithTheCodeOfTheCommand) {
  keep(kHello + kOpened, stream(), milliseconds(50), kExit7);
  open("exit 99");
  EXPECT_TRUE(until([&] { return ends_ == 1; }));
  EXPECT_EQ(frames_, 1);
  EXPECT_TRUE(started_);
  EXPECT_TRUE(WIFEXITED(death_.status) && WEXITSTATUS(death_.status) == 7) << death_.status;
}

TEST_F(Sessions, ThatAreRefusedAreReplacedByTheProgram) {
  std::ofstream(folder_ + "/answer") << stream();
  keep(kHello + kFailure, "", milliseconds(2000));
  open(fmt::format("cat '{}/answer'; exit 5", folder_));
  EXPECT_TRUE(until([&] { return ends_ == 1; }));
  EXPECT_EQ(frames_, 1);
  EXPECT_TRUE(WIFEXITED(death_.status) && WEXITSTATUS(death_.status) == 5) << death_.status;
}

TEST_F(Sessions, ThatAreRefusedAndCannotBeReplacedSayWhy) {
  keep(kHello + kFailure, "", milliseconds(2000));
  open("");
  EXPECT_TRUE(until([&] { return ends_ == 1; }));
  EXPECT_FALSE(death_.spawned);
  EXPECT_NE(death_.stderr_text.find("no-such-program"), std::string::npos) << death_.stderr_text;
}

// What was written before the end is not lost, whatever comes first.
TEST_F(Sessions, ThatEndAtOnceAreReadToTheEnd) {
  keep(kHello + kOpened + kExit7, stream(), milliseconds(0));
  open("exit 99");
  EXPECT_TRUE(until([&] { return ends_ == 1; }));
  EXPECT_EQ(frames_, 1);
  EXPECT_TRUE(WIFEXITED(death_.status) && WEXITSTATUS(death_.status) == 7) << death_.status;
}

TEST_F(Sessions, ThatNobodyListensForAreReplacedByTheProgram) {
  listener_.reset();
  open("exit 5");
  EXPECT_TRUE(until([&] { return ends_ == 1; }));
  EXPECT_TRUE(WIFEXITED(death_.status) && WEXITSTATUS(death_.status) == 5) << death_.status;
}

// As the death of a process: noticed from the loop, not within the call.
TEST_F(Sessions, AreCutByAKill) {
  keep(kHello + kOpened, stream(), milliseconds(3000));
  open("exit 99");
  ASSERT_TRUE(until([&] { return frames_ == 1; }));
  connection_->kill(SIGKILL);
  connection_->kill(SIGKILL);
  EXPECT_EQ(ends_, 0);
  EXPECT_TRUE(until([&] { return ends_ == 1; }));
  EXPECT_TRUE(WIFSIGNALED(death_.status) && WTERMSIG(death_.status) == SIGKILL) << death_.status;
  EXPECT_TRUE(started_);
}

TEST_F(Sessions, ThatWereNeverAnsweredAreCutToo) {
  open("exit 99");
  EXPECT_FALSE(until([&, began = os::mono_now()] { return ends_ > 0 || os::mono_now() - began > milliseconds(200); }) && ends_ > 0);
  const os::Mono began = os::mono_now();
  connection_->kill(SIGTERM);
  EXPECT_TRUE(until([&] { return ends_ == 1; }));
  EXPECT_LT(os::mono_now() - began, milliseconds(500));  // though the ssh may still hold what it was given
  EXPECT_FALSE(started_);
}

TEST_F(Sessions, AreEndedWithTheirConnection) {
  keep(kHello + kOpened, stream(), milliseconds(5000));
  open("exit 99");
  ASSERT_TRUE(until([&] { return frames_ == 1; }));
  const os::Mono began = os::mono_now();
  connection_.reset();
  master_.join();  // it sees the other side go
  EXPECT_LT(os::mono_now() - began, milliseconds(2000));
}

}  // namespace
}  // namespace phalanx::hosts
