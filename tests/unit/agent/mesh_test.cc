// The mesh test's two halves, each in a network namespace of its own with a real cable (veth) between them and real firewalls on it.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "agent/mesh/dialer.h"
#include "agent/mesh/listener.h"
#include "no_descriptors.h"

namespace phalanx::agent {
namespace {

const std::string kKey = "0123456789abcdef0123456789abcdef";
constexpr os::milliseconds kTimeout{700};

bool sh(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

// The far host: listens on 10.9.0.2 with the given key, and beside it, on port 2222, a stranger that greets like sshd.
[[noreturn]] void far_host(int ready, int go) {
  char byte = 0;
  if (::unshare(CLONE_NEWNET) != 0) ::_exit(1);
  if (::write(ready, "u", 1) != 1 || ::read(go, &byte, 1) != 1) ::_exit(1);
  auto loop = std::move(os::Loop::create()).value();
  MeshListener listener(*loop);
  wire::Listening listening = listener.listen({kKey, {{"10.9.0.2", 0}}});
  base::Result<os::Listener> stranger = os::listen_tcp({"10.9.0.2", 2222});
  if (!listening.places[0].outcome.ok || !stranger.ok()) ::_exit(1);
  std::vector<os::Fd> visitors;
  auto greet = loop->watch(stranger->fd.get(), EPOLLIN, [&](uint32_t) {
    base::Result<os::Accepted> accepted = os::accept_tcp(stranger->fd.get());
    if (!accepted.ok() || !accepted->fd.valid()) return;
    os::write_step(accepted->fd.get(), "SSH-2.0-OpenSSH_9.2\r\n", 21);
    visitors.push_back(std::move(accepted->fd));
  });
  if (!greet.ok() || ::write(ready, &listening.places[0].port, 4) != 4) ::_exit(1);
  loop->run();
  ::_exit(0);
}

// A dialer by hand, on the loopback.
class MeshListenerTest : public testing::Test {
 protected:
  void listen(os::milliseconds unproven, os::milliseconds idle, size_t most_sessions = MeshListener::kMostSessions) {
    listener_ = std::make_unique<MeshListener>(*loop_, unproven, idle, most_sessions);
    wire::Listening listening = listener_->listen({kKey, {{"127.0.0.1", 0}}});
    ASSERT_TRUE(listening.places[0].outcome.ok);
    port_ = static_cast<uint16_t>(listening.places[0].port);
  }
  os::Fd connect() const {
    os::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_TRUE(os::set_nonblocking(fd.get()).ok());
    return fd;
  }
  // So many bytes; fewer if the listener closes or five seconds pass.
  std::string hear(const os::Fd& fd, size_t size) {
    std::string out;
    for (os::Mono begin = os::mono_now(); out.size() < size && os::mono_now() - begin < os::milliseconds(5000);) {
      loop_->poll(os::milliseconds(10));
      char block[256];
      os::IoStep step = os::read_step(fd.get(), block, std::min(sizeof(block), size - out.size()));
      if (step.kind == os::IoStep::kBytes) out.append(block, step.bytes);
      else if (step.kind != os::IoStep::kWouldBlock) break;
    }
    return out;
  }
  // The listener's answer to a hello with this nonce.
  std::string greet(const os::Fd& fd, const std::string& nonce) {
    EXPECT_TRUE(os::write_all(fd.get(), std::string(kMeshHello) + nonce, "hello").ok());
    return hear(fd, kMeshAnswerBytes);
  }
  // Ends when the listener has closed.
  int64_t lives_for(const os::Fd& fd) {
    os::Mono begin = os::mono_now();
    EXPECT_EQ(hear(fd, 1), "");
    return std::chrono::duration_cast<os::milliseconds>(os::mono_now() - begin).count();
  }
  std::unique_ptr<os::Loop> loop_ = std::move(os::Loop::create()).value();
  std::unique_ptr<MeshListener> listener_;
  uint16_t port_ = 0;
  const std::string nonce_ = std::string(wire::kNonceBytes, 'n');
};

// A stranger who connects and says nothing, and a peer that fell silent, do not hold a place for as long as the listener lives.
TEST_F(MeshListenerTest, SilentSessionsAreClosed) {
  listen(os::milliseconds(150), os::milliseconds(400));
  int64_t silent = lives_for(connect());
  EXPECT_GE(silent, 140);
  EXPECT_LT(silent, 390);
  os::Fd fd = connect();
  std::string answer = greet(fd, nonce_);
  ASSERT_EQ(answer.size(), kMeshAnswerBytes);
  std::string theirs = answer.substr(kMeshHello.size(), wire::kNonceBytes);
  EXPECT_TRUE(os::write_all(fd.get(), wire::proof_of(wire::Side::kDialer, kKey, nonce_, theirs), "proof").ok());
  int64_t proven = lives_for(fd);
  EXPECT_GE(proven, 390);
  EXPECT_LT(proven, 3000);
}

// What crosses the network is no key: neither a recording of another dialer nor the listener's own proof lets anybody in.
TEST_F(MeshListenerTest, ARecordingProvesNothing) {
  listen(os::milliseconds(3000), os::milliseconds(3000));
  os::Fd genuine = connect();
  std::string answer = greet(genuine, nonce_);
  ASSERT_EQ(answer.size(), kMeshAnswerBytes);
  EXPECT_EQ(answer.find(kKey.substr(0, 8)), std::string::npos);
  std::string theirs = answer.substr(kMeshHello.size(), wire::kNonceBytes);
  EXPECT_TRUE(wire::proves(answer.substr(kMeshHello.size() + wire::kNonceBytes), wire::Side::kListener, kKey, nonce_, theirs));
  std::string recorded = wire::proof_of(wire::Side::kDialer, kKey, nonce_, theirs);
  EXPECT_TRUE(os::write_all(genuine.get(), recorded + std::string("E\1\0\0\0x", 6), "proof").ok());
  EXPECT_EQ(hear(genuine, 1), "x");
  for (bool mirrored : {false, true}) {
    os::Fd fd = connect();
    std::string again = greet(fd, nonce_);
    ASSERT_EQ(again.size(), kMeshAnswerBytes);
    EXPECT_NE(again, answer) << "the listener's nonce is new";
    std::string proof = mirrored ? again.substr(kMeshHello.size() + wire::kNonceBytes) : recorded;
    EXPECT_TRUE(os::write_all(fd.get(), proof + std::string("E\1\0\0\0x", 6), "proof").ok());
    EXPECT_EQ(hear(fd, 1), "");
  }
}

TEST_F(MeshListenerTest, SilentStrangersKeepNoHostOut) {
  listen(os::milliseconds(3000), os::milliseconds(3000), 3);
  std::vector<os::Fd> silent;
  for (int i = 0; i < 8; ++i) silent.push_back(connect());
  EXPECT_EQ(greet(connect(), nonce_).size(), kMeshAnswerBytes);
}

TEST_F(MeshListenerTest, OutOfDescriptorsItLooksAwayForAMoment) {
  listen(os::milliseconds(3000), os::milliseconds(3000));
  os::Fd fd = connect();
  {
    NoDescriptors none;
    EXPECT_LT(wakeups(*loop_), 30);
  }
  EXPECT_EQ(greet(fd, nonce_).size(), kMeshAnswerBytes);
}

TEST_F(MeshListenerTest, AnotherUserOfThisMachineHearsNothing) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to be a second user";
  listen(os::milliseconds(3000), os::milliseconds(3000));
  pid_t other = ::fork();
  if (other == 0) {
    if (::setresuid(61'202, 61'202, 61'202) != 0) ::_exit(1);
    os::Fd fd = connect();
    ::fcntl(fd.get(), F_SETFL, 0);
    std::string hello = std::string(kMeshHello) + nonce_;
    char byte = 0;
    ::_exit(::write(fd.get(), hello.data(), hello.size()) > 0 && ::read(fd.get(), &byte, 1) <= 0 ? 0 : 2);
  }
  int status = -1;
  for (int i = 0; i < 200 && ::waitpid(other, &status, WNOHANG) != other; ++i) loop_->poll(os::milliseconds(20));
  EXPECT_EQ(status, 0) << "closed without a byte";
}

class Mesh : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
    if (!sh("nft --version") || !sh("ip -V") || !sh("ping -V")) GTEST_SKIP() << "needs nft, ip and ping";
    if (!std::exchange(in_namespace_, true) && (::unshare(CLONE_NEWNET) != 0 || !sh("ip link set lo up"))) {
      in_namespace_ = false;
      GTEST_SKIP() << "network namespaces cannot be made here";
    }
    os::PipeEnds ready = std::move(os::make_pipe()).value();
    os::PipeEnds go = std::move(os::make_pipe()).value();
    far_ = ::fork();
    if (far_ == 0) far_host(ready.write.get(), go.read.get());
    char byte = 0;
    ASSERT_EQ(::read(ready.read.get(), &byte, 1), 1);
    ASSERT_TRUE(sh("ip link add mesh0 type veth peer name eth0 netns " + std::to_string(far_)));
    ASSERT_TRUE(sh("ip addr add 10.9.0.1/24 dev mesh0 && ip link set mesh0 up"));
    ASSERT_TRUE(there("ip addr add 10.9.0.2/24 dev eth0") && there("ip link set eth0 up"));
    ASSERT_EQ(::write(go.write.get(), "g", 1), 1);
    ASSERT_EQ(::read(ready.read.get(), &port_, 4), 4);
    ASSERT_TRUE(sh("ping -i 0.05 -c 1 -w 5 10.9.0.2")) << "the kernel notices a new cable only after a while";
  }
  void TearDown() override {
    if (far_ > 0) {
      ::kill(far_, SIGKILL);
      ::waitpid(far_, nullptr, 0);
      sh("ip link del mesh0");
    }
  }
  bool there(const std::string& command) { return sh("nsenter -t " + std::to_string(far_) + " -n " + command); }
  // A rule for what comes in from the cable.
  void firewall(const std::string& rule) {
    ASSERT_TRUE(
        there("nft 'add table inet t; add chain inet t in { type filter hook input priority 0; }; add rule inet t in " + rule + "'"));
  }

  wire::DialedLink dial(uint32_t burst_ms = 0, const std::string& address = "10.9.0.2", uint32_t port = 0, const std::string& key = kKey) {
    auto loop = std::move(os::Loop::create()).value();
    wire::Dialed answer;
    MeshDialer dialer(*loop, [&](wire::Dialed dialed) {
      answer = std::move(dialed);
      loop->stop();
    });
    wire::Dial request;
    request.round = 3;
    request.key = key;
    request.echoes = 8;
    request.payload_bytes = 256 << 10;
    request.burst_ms = burst_ms;
    request.timeout_ms = static_cast<uint32_t>(kTimeout.count());
    request.targets = {{1, address, port ? port : port_, false}};
    os::Mono begin = os::mono_now();
    dialer.dial(std::move(request));
    loop->after(os::milliseconds(15'000), [&] { loop->stop(); });
    loop->run();
    took_ = os::mono_now() - begin;
    EXPECT_EQ(answer.round, 3u);
    if (answer.links.size() != 1) {
      ADD_FAILURE() << "no answer";
      return {};
    }
    return answer.links[0];
  }

  static bool in_namespace_;
  pid_t far_ = 0;
  uint32_t port_ = 0;
  os::nanoseconds took_{};
};
bool Mesh::in_namespace_ = false;

TEST_F(Mesh, AGoodLinkIsMeasured) {
  wire::DialedLink link = dial(50);
  EXPECT_EQ(wire::name_of(link.outcome), "ok");
  EXPECT_EQ(link.local_address, "10.9.0.1");
  EXPECT_GT(link.round_trip_ns, 0);
  EXPECT_LT(link.round_trip_ns, 50'000'000);
  EXPECT_GT(link.bytes_per_second, 10'000'000);
}

TEST_F(Mesh, AResetIsRefusedAtOnce) {
  firewall("tcp dport != 22 reject with tcp reset");
  wire::DialedLink link = dial();
  EXPECT_EQ(wire::name_of(link.outcome), "refused");
  EXPECT_EQ(link.error_number, static_cast<uint32_t>(ECONNREFUSED));
  EXPECT_LT(took_, os::milliseconds(500));
}

TEST_F(Mesh, APortWithoutListenerIsRefused) { EXPECT_EQ(wire::name_of(dial(0, "10.9.0.2", 9).outcome), "refused"); }

TEST_F(Mesh, ARejectByIcmpIsAFirewallAndToldAtOnce) {
  firewall("tcp dport != 22 reject");
  EXPECT_EQ(wire::name_of(dial().outcome), "rejected");
  EXPECT_LT(took_, os::milliseconds(500));
}

TEST_F(Mesh, AnAdministrativeProhibitionIsItsOwnKind) {
  firewall("tcp dport != 22 reject with icmpx type admin-prohibited");
  wire::DialedLink link = dial();
  EXPECT_EQ(wire::name_of(link.outcome), "prohibited");
  EXPECT_EQ(link.error_number, static_cast<uint32_t>(EHOSTUNREACH));
  EXPECT_LT(took_, os::milliseconds(500));
}

TEST_F(Mesh, SilenceIsATimeout) {
  firewall("tcp dport != 22 drop");
  EXPECT_EQ(wire::name_of(dial().outcome), "timeout");
  EXPECT_GE(took_, kTimeout);
  EXPECT_LT(took_, kTimeout + os::milliseconds(500));
}

TEST_F(Mesh, NoRouteIsSaidByOurOwnTable) { EXPECT_EQ(wire::name_of(dial(0, "10.250.0.1", 80).outcome), "no-route"); }

TEST_F(Mesh, ANeighbourThatDoesNotAnswerIsUnreachableNotFirewalled) {
  EXPECT_EQ(wire::name_of(dial(0, "10.9.0.77", 80).outcome), "unreachable");
  EXPECT_LT(took_, kTimeout + os::milliseconds(500)) << "neighbour discovery takes three seconds to give up; we need not wait";
}

TEST_F(Mesh, APathThatOnlyPassesSmallPacketsIsStalled) {
  firewall("meta length > 1400 drop");
  wire::DialedLink link = dial();
  EXPECT_EQ(wire::name_of(link.outcome), "stalled");
  EXPECT_GT(link.round_trip_ns, 0) << "small packets pass";
  EXPECT_GT(link.retransmits, 0);
}

TEST_F(Mesh, AnotherProgramIsAStranger) {
  EXPECT_EQ(wire::name_of(dial(0, "10.9.0.2", 2222).outcome), "stranger");
  EXPECT_LT(took_, os::milliseconds(500));
}

TEST_F(Mesh, AnotherRunsKeyIsAStranger) {
  EXPECT_EQ(wire::name_of(dial(0, "10.9.0.2", 0, "fedcba9876543210fedcba9876543210").outcome), "stranger");
}

TEST_F(Mesh, AnAgentThatStandsStillIsSilent) {
  ::kill(far_, SIGSTOP);
  EXPECT_EQ(wire::name_of(dial().outcome), "silent");
}

TEST_F(Mesh, ASlowLinkIsMeasuredNotCondemned) {
  if (!sh("tc qdisc add dev mesh0 root tbf rate 20mbit burst 32k latency 200ms")) GTEST_SKIP() << "no tbf in this kernel";
  wire::DialedLink link = dial(200);
  EXPECT_EQ(wire::name_of(link.outcome), "ok");
  EXPECT_GT(link.bytes_per_second, 500'000);
  EXPECT_LT(link.bytes_per_second, 5'000'000) << "20 Mbit/s are 2.5 MB/s";
}

TEST_F(Mesh, ManyTargetsAreDialedSideBySide) {
  auto loop = std::move(os::Loop::create()).value();
  wire::Dialed answer;
  MeshDialer dialer(*loop, [&](wire::Dialed dialed) {
    answer = std::move(dialed);
    loop->stop();
  });
  wire::Dial request;
  request.key = kKey;
  request.payload_bytes = 64 << 10;
  request.timeout_ms = static_cast<uint32_t>(kTimeout.count());
  for (uint32_t i = 0; i < 30; ++i) request.targets.push_back({i, i % 3 == 0 ? "10.9.0.77" : "10.9.0.2", port_, i == 1});
  os::Mono begin = os::mono_now();
  dialer.dial(std::move(request));
  loop->after(os::milliseconds(10'000), [&] { loop->stop(); });
  loop->run();
  EXPECT_LT(os::mono_now() - begin, kTimeout + os::milliseconds(2000));
  ASSERT_EQ(answer.links.size(), 30u);
  for (uint32_t i = 0; i < 30; ++i) {
    EXPECT_EQ(answer.links[i].to, i);
    EXPECT_EQ(wire::name_of(answer.links[i].outcome), i % 3 == 0 ? "unreachable" : "ok");
  }
  EXPECT_TRUE(answer.links[1].master_port);
}

}  // namespace
}  // namespace phalanx::agent
