// A session that is asked for at the control socket of an ssh: against a listener that speaks as OpenSSH does, and against others.
#include "hosts/connect/ssh_session.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <initializer_list>

#include "os/local_socket.h"
#include "scratch.h"

namespace phalanx::hosts {
namespace {

std::string number(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}
std::string text(const std::string& value) { return number(static_cast<uint32_t>(value.size())) + value; }
std::string packet(std::initializer_list<uint32_t> numbers, const std::string& more = "") {
  std::string body;
  for (uint32_t one : numbers) body += number(one);
  return text(body + more);
}

constexpr uint32_t kHello = 1, kNewSession = 0x10000002, kFailure = 0x80000003, kExit = 0x80000004, kOpened = 0x80000006;
const std::string kGreeting = packet({kHello, 4});

class Session : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = scratch::folder("ssh-session");
    base::Result<os::Fd> listener = os::listen_local(folder_, "socket");
    ASSERT_TRUE(listener.ok());
    listener_ = std::move(*listener);
    for (os::PipeEnds& pipe : pipes_) pipe = std::move(*os::make_pipe());
  }
  base::Result<SshSession> ask(const std::string& command = "exec agent") {
    const SessionRequest request{folder_, "socket", command, {"LANG=C.UTF-8", "LC_TIME=x"}};
    base::Result<SshSession> session = SshSession::connect(request);
    if (!session.ok()) return session;
    const base::Status asked = session->ask(request, pipes_[0].read.get(), pipes_[1].write.get(), pipes_[2].write.get());
    return asked.ok() ? std::move(session) : base::Result<SshSession>(asked.error());
  }
  void accept() {
    base::Result<os::Fd> peer = os::accept_local(listener_.get());
    ASSERT_TRUE(peer.ok() && peer->valid());
    peer_ = std::move(*peer);
  }
  void say(const std::string& bytes) { ASSERT_EQ(::send(peer_.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size())); }
  std::string hear(size_t size) {
    std::string bytes(size, '\0');
    const ssize_t got = ::recv(peer_.get(), bytes.data(), size, 0);
    bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return bytes;
  }

  std::string folder_;
  os::Fd listener_, peer_;
  os::PipeEnds pipes_[3];
};

TEST_F(Session, AsksAsSshDoesAndHandsItsPipesOver) {
  base::Result<SshSession> session = ask();
  ASSERT_TRUE(session.ok());
  accept();
  const std::string hello = packet({kHello, 4});
  EXPECT_EQ(hear(hello.size()), hello);
  // PROTOCOL.mux, section 2: no terminal, no X11, no agent, no subsystem, no escape character.
  const std::string request = packet({kNewSession, 0}, text("") + number(0) + number(0) + number(0) + number(0) + number(0xffffffff) +
                                                           text("") + text("exec agent") + text("LANG=C.UTF-8") + text("LC_TIME=x"));
  EXPECT_EQ(hear(request.size()), request);
  const os::Fd in = os::receive_descriptor(peer_.get()), out = os::receive_descriptor(peer_.get()),
               err = os::receive_descriptor(peer_.get());
  ASSERT_TRUE(in.valid() && out.valid() && err.valid());
  char byte = 0;
  ASSERT_EQ(::write(pipes_[0].write.get(), "i", 1), 1);
  EXPECT_EQ(::read(in.get(), &byte, 1), 1);
  ASSERT_EQ(::write(out.get(), "o", 1), 1);
  EXPECT_TRUE(::read(pipes_[1].read.get(), &byte, 1) == 1 && byte == 'o');
  ASSERT_EQ(::write(err.get(), "e", 1), 1);
  EXPECT_TRUE(::read(pipes_[2].read.get(), &byte, 1) == 1 && byte == 'e');
}

TEST_F(Session, OpensAndEndsWithTheCodeOfItsCommand) {
  base::Result<SshSession> session = ask();
  ASSERT_TRUE(session.ok());
  accept();
  EXPECT_EQ(session->read(), SshSession::State::kAsked);
  say(kGreeting.substr(0, 5));
  EXPECT_EQ(session->read(), SshSession::State::kAsked);
  say(kGreeting.substr(5) + packet({kOpened, 0, 7}));
  EXPECT_EQ(session->read(), SshSession::State::kOpen);
  say(packet({0x80000008, 7}) + packet({kExit, 7, 3}));
  EXPECT_EQ(session->read(), SshSession::State::kOpen);
  peer_.reset();
  EXPECT_EQ(session->read(), SshSession::State::kEnded);
  EXPECT_EQ(session->exit_code(), 3);
}

TEST_F(Session, ThatWasCutOffEndsLikeSsh) {
  base::Result<SshSession> session = ask();
  ASSERT_TRUE(session.ok());
  accept();
  say(kGreeting + packet({kOpened, 0, 7}));
  EXPECT_EQ(session->read(), SshSession::State::kOpen);
  peer_.reset();
  EXPECT_EQ(session->read(), SshSession::State::kEnded);
  EXPECT_EQ(session->exit_code(), 255);
}

// Whoever answers: a session that has not begun is asked for by ssh itself.
TEST_F(Session, IsRefusedByWhateverIsNoAnswer) {
  const std::string answers[] = {
      kGreeting + packet({kFailure, 0}, text("Session open refused by peer")),
      packet({kHello, 3}),
      kGreeting,  // and the end
      "",
      number(0xffffffff) + "endless",
      "HTTP/1.1 400 Bad Request\r\n\r\n",
      number(0) + number(0),
  };
  for (const std::string& answer : answers) {
    base::Result<SshSession> session = ask();
    ASSERT_TRUE(session.ok());
    accept();
    say(answer);
    ::shutdown(peer_.get(), SHUT_WR);
    EXPECT_EQ(session->read(), SshSession::State::kRefused) << testing::PrintToString(answer);
  }
}

TEST_F(Session, WhereNobodyListensNothingBegins) {
  listener_.reset();
  EXPECT_FALSE(ask().ok());
  ::unlink((folder_ + "/socket").c_str());
  EXPECT_FALSE(ask().ok());
}

// A socket that takes no more bytes is not waited for.
TEST_F(Session, ARequestThatDoesNotFitIsAnError) { EXPECT_FALSE(ask(std::string(8 << 20, 'x')).ok()); }

}  // namespace
}  // namespace phalanx::hosts
