// Node 0 while it waits for nodes, and somebody on the network who has no token.
#include "hosts/join/gather.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
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

MemberFacts facts(uint32_t rank) { return {rank, 2, "b1", rank == 0 ? "h0" : "h1", "", {"true"}}; }

TEST(Gather, AddressesOfOneMachineAreOneOrigin) {
  EXPECT_EQ(origin_of("2001:db8:1:2::1"), origin_of("2001:db8:1:2:ffff:1:2:3"));
  EXPECT_NE(origin_of("2001:db8:1:2::1"), origin_of("2001:db8:1:3::1"));
  EXPECT_EQ(origin_of("fe80::1%eth0"), origin_of("fe80::2"));
  EXPECT_NE(origin_of("10.0.0.1"), origin_of("10.0.0.2"));
  EXPECT_NE(origin_of("::ffff:10.0.0.1"), origin_of("::ffff:10.0.0.2"));
}

TEST(Gather, AFloodFromOneAddressKeepsNoNodeOut) {
  const uint16_t port = free_port();
  int listens[2];
  ASSERT_EQ(::pipe(listens), 0);
  const pid_t node0 = ::fork();
  if (node0 == 0) {
    GatherOptions options{{"127.0.0.1", port}, kToken, facts(0), std::chrono::milliseconds(20'000), {}};
    options.say = [&](const std::string&) { (void)!::write(listens[1], ".", 1); };
    const base::Result<std::vector<JoinedNode>> nodes = gather(options);
    ::_exit(nodes.ok() && nodes->size() == 1 ? 0 : 1);
  }
  char dot = 0;
  ASSERT_EQ(::read(listens[0], &dot, 1), 1);
  // A node that is slower than the flood.
  const os::Fd node = connected("127.0.0.1", port);
  wire::SealedStream stream(wire::Side::kDialer, kToken, wire::fresh_nonce().value());
  send(node, stream.greeting());
  std::string proof;
  ASSERT_TRUE(stream.feed(answer(node), proof).ok() && stream.open());
  std::vector<os::Fd> flood;
  for (int i = 0; i < 200; ++i) flood.push_back(connected("127.0.0.2", port));
  send(flood.back(), std::string(wire::kJoinMagic) + std::string(wire::kNonceBytes, 'x'));
  ASSERT_NE(answer(flood.back()), "");
  EXPECT_EQ(::send(node.get(), proof.data(), proof.size(), MSG_NOSIGNAL), static_cast<ssize_t>(proof.size())) << "it was sent away";
  const std::string record = stream.seal(wire::RecordType::kFacts, encode(facts(1)));
  EXPECT_EQ(::send(node.get(), record.data(), record.size(), MSG_NOSIGNAL), static_cast<ssize_t>(record.size()));
  int status = 1;
  ASSERT_EQ(::waitpid(node0, &status, 0), node0);
  EXPECT_EQ(status, 0);
  for (int fd : listens) ::close(fd);
}

}  // namespace
}  // namespace phalanx::hosts
