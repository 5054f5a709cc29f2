// What is lost between this host and others, by the kernel's counts of its connections.
#include "machine/network/peer_watch.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "machine/network/tcp_sockets.h"
#include "os/net.h"

using namespace phalanx;

namespace {

using machine::ConnectionCounts;
using machine::PeerTally;
using machine::PeerTraffic;

ConnectionCounts counts(const char* peer, uint64_t sent, uint64_t resent, bool recovering = false) {
  ConnectionCounts c;
  in_addr address{};
  ::inet_pton(AF_INET, peer, &address);
  c.peer[0] = address.s_addr;
  c.sent = sent;
  c.resent = resent;
  c.recovering = recovering;
  return c;
}

TEST(PeerTally, CountsWhatCameSinceTheFirstLook) {
  PeerTally tally;
  tally.look({{1, counts("10.0.0.2", 1000, 500)}});
  EXPECT_TRUE(tally.take(64).empty()) << "what was before is not counted";
  EXPECT_FALSE(tally.lossy());
  tally.look({{1, counts("10.0.0.2", 1100, 505)}, {2, counts("10.0.0.2", 20, 1)}, {3, counts("10.0.0.3", 300, 0)}});
  EXPECT_TRUE(tally.lossy());
  tally.look({{1, counts("10.0.0.2", 1110, 505, true)}});
  EXPECT_TRUE(tally.lossy());
  std::vector<PeerTraffic> peers = tally.take(64);
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_EQ(peers[0].address, "10.0.0.3");
  EXPECT_EQ(peers[0].sent, 300u);
  EXPECT_EQ(peers[1].address, "10.0.0.2");
  EXPECT_EQ(peers[1].sent, 130u);
  EXPECT_EQ(peers[1].resent, 6u);
  EXPECT_EQ(peers[1].looks, 2u);
  EXPECT_EQ(peers[1].recovering, 1u);
  tally.look({{1, counts("10.0.0.2", 1110, 505)}});
  EXPECT_FALSE(tally.lossy());
  EXPECT_TRUE(tally.take(64).empty());
}

TEST(PeerTally, TheBusiestWhereThereAreMany) {
  PeerTally tally;
  std::map<uint64_t, ConnectionCounts> many;
  tally.look(many);
  for (uint64_t i = 1; i <= 200; ++i) many[i] = counts(("10.0.1." + std::to_string(i)).c_str(), i, 0);
  tally.look(many);
  std::vector<PeerTraffic> peers = tally.take(64);
  ASSERT_EQ(peers.size(), 64u);
  EXPECT_EQ(peers[0].address, "10.0.1.200");
}

TEST(PeerTally, CountsThatGoBackAreNone) {
  PeerTally tally;
  tally.look({{1, counts("10.0.0.2", 1000, 500)}});
  tally.look({{1, counts("10.0.0.2", 10, 5)}});
  EXPECT_TRUE(tally.take(64).empty());
}

TEST(PeerWatch, ConnectionsWithinTheMachineAreNotAsked) {
  auto listener = os::listen_tcp({"127.0.0.1", 0});
  ASSERT_TRUE(listener.ok());
  auto near = os::connect_tcp_start(listener->endpoint);
  ASSERT_TRUE(near.ok());
  for (const auto& [cookie, c] : machine::connection_counts()) EXPECT_FALSE(machine::connection_address(c).starts_with("127.")) << cookie;
}

}  // namespace
