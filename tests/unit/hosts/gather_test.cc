// Node 0 while it waits for nodes, and somebody on the network who has no token.
#include "hosts/join/gather.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/files.h"
#include "wire/sealed.h"

namespace phalanx::hosts {
namespace {

constexpr const char* kToken = "a token that both nodes know";

sockaddr_in place(const char* address, uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  ::inet_pton(AF_INET, address, &out.sin_addr);
  return out;
}

os::Fd connected(const char* from, uint16_t port) {
  os::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in own = place(from, 0), node0 = place("127.0.0.1", port);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)), 0);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&node0), sizeof(node0)), 0);
  return socket;
}

uint16_t free_port() {
  const os::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in own = place("127.0.0.1", 0);
  socklen_t size = sizeof(own);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), size), 0);
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size), 0);
  return ntohs(own.sin_port);
}

void send(const os::Fd& socket, const std::string& bytes) { ASSERT_TRUE(os::write_all(socket.get(), bytes, "a socket").ok()); }

// What node 0 answers to a greeting: it has taken this connection, and all that came before.
std::string answer(const os::Fd& socket) {
  std::string bytes(wire::kNonceBytes + wire::kProofBytes, '\0');
  return ::recv(socket.get(), bytes.data(), bytes.size(), MSG_WAITALL) == static_cast<ssize_t>(bytes.size()) ? bytes : "";
}

MemberFacts facts(uint32_t rank, uint32_t nodes = 2) { return {rank, nodes, "b1", rank == 0 ? "h0" : "h1", "", {"true"}}; }

// Node 0 of so many, in a process of its own; it listens when this returns.
class Node0 {
 public:
  Node0(uint16_t port, uint32_t nodes) {
    int listens[2];
    EXPECT_EQ(::pipe(listens), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      GatherOptions options{{"127.0.0.1", port}, kToken, facts(0, nodes), std::chrono::milliseconds(20'000), {}};
      bool told = false;
      options.say = [&](const std::string&) {
        if (!told) (void)!::write(listens[1], ".", 1);
        told = true;
      };
      const base::Result<std::vector<JoinedNode>> joined = gather(options);
      ::_exit(joined.ok() ? (joined->size() + 1 == nodes ? 0 : 1) : base::exit_code(joined.error().kind));
    }
    char dot = 0;
    EXPECT_EQ(::read(listens[0], &dot, 1), 1);
    for (int fd : listens) ::close(fd);
  }
  pid_t pid() const { return pid_; }
  // 0: all nodes have joined.
  int end() const {
    int status = 1;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
};

// A node that joins step by step.
struct Node {
  Node(const char* from, uint16_t port) : socket(connected(from, port)) {
    send(socket, stream.greeting());
    EXPECT_TRUE(stream.feed(answer(socket), proof).ok() && stream.open());
  }
  bool join(const MemberFacts& own) {
    if (!stream.open()) return false;
    const std::string bytes = proof + stream.seal(wire::RecordType::kFacts, encode(own));
    return ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  wire::SealedStream stream{wire::Side::kDialer, kToken, wire::fresh_nonce().value()};
  os::Fd socket;
  std::string proof;
};

TEST(Gather, AddressesOfOneMachineAreOneOrigin) {
  EXPECT_EQ(origin_of("2001:db8:1:2::1"), origin_of("2001:db8:1:2:ffff:1:2:3"));
  EXPECT_NE(origin_of("2001:db8:1:2::1"), origin_of("2001:db8:1:3::1"));
  EXPECT_EQ(origin_of("fe80::1%eth0"), origin_of("fe80::2"));
  EXPECT_NE(origin_of("10.0.0.1"), origin_of("10.0.0.2"));
  EXPECT_NE(origin_of("::ffff:10.0.0.1"), origin_of("::ffff:10.0.0.2"));
}

TEST(Gather, AFloodFromOneAddressKeepsNoNodeOut) {
  const uint16_t port = free_port();
  const Node0 node0(port, 2);
  Node node("127.0.0.1", port);  // slower than the flood
  std::vector<os::Fd> flood;
  for (int i = 0; i < 200; ++i) flood.push_back(connected("127.0.0.2", port));
  send(flood.back(), std::string(wire::kJoinMagic) + std::string(wire::kNonceBytes, 'x'));
  ASSERT_NE(answer(flood.back()), "");
  EXPECT_TRUE(node.join(facts(1))) << "it was sent away";
  EXPECT_EQ(node0.end(), 0);
}

// Callers that connect and leave as fast as they can, for as long as this lives.
class Stampede {
 public:
  explicit Stampede(uint16_t port) {
    for (pid_t& pid : pids_) {
      pid = ::fork();
      if (pid != 0) continue;
      const sockaddr_in node0 = place("127.0.0.1", port);
      for (;;) {
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)!::connect(fd, reinterpret_cast<const sockaddr*>(&node0), sizeof(node0));
        ::close(fd);
      }
    }
  }
  ~Stampede() {
    for (pid_t pid : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

 private:
  pid_t pids_[2];
};

TEST(Gather, WhoConnectsAndLeavesWithoutPauseKeepsNodeZeroFromNothing) {
  const uint16_t port = free_port();
  const Node0 node0(port, 3);
  const Stampede stampede(port);
  for (int i = 0; i < 50; ++i) Node("127.0.0.3", port);  // each is answered
  Node node("127.0.0.1", port);
  EXPECT_TRUE(node.join(facts(1, 3)));
  ::kill(node0.pid(), SIGTERM);
  EXPECT_EQ(node0.end(), base::exit_code(base::ErrorKind::kInterrupted));
}

TEST(Gather, AnotherUserOfThisMachineGetsNoAnswer) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const uint16_t port = free_port();
  const Node0 node0(port, 2);
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    if (::setuid(65534) != 0) ::_exit(3);
    const os::Fd socket = connected("127.0.0.2", port);
    const std::string greeting = std::string(wire::kJoinMagic) + std::string(wire::kNonceBytes, 'x');
    (void)!::send(socket.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL);
    ::_exit(answer(socket).empty() ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(stranger, &status, 0), stranger);
  EXPECT_EQ(status, 0);
  Node node("127.0.0.1", port);
  EXPECT_TRUE(node.join(facts(1)));
  EXPECT_EQ(node0.end(), 0);
}

TEST(Gather, ManyNodesJoin) {
  constexpr uint32_t kNodes = 300;
  const uint16_t port = free_port();
  const Node0 node0(port, kNodes);
  std::vector<std::unique_ptr<Node>> nodes;
  for (uint32_t rank = 1; rank < kNodes; ++rank) {
    nodes.push_back(std::make_unique<Node>("127.0.0.1", port));
    ASSERT_TRUE(nodes.back()->join(facts(rank, kNodes)));
  }
  EXPECT_EQ(node0.end(), 0);
}

}  // namespace
}  // namespace phalanx::hosts
