// Faults of the network that are really made on the test cluster, found by `phalanx check`: host, code, and a fix that works when typed.
#include "check_fixture.h"

using namespace phalanx;

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

class CheckNetwork : public Check {
 protected:
  void SetUp() override {
    Check::SetUp();
    if (!IsSkipped()) start({.hosts = 3});
  }
  // A firewall on h2 that answers new connections to any port but ssh's in its own way.
  void firewall(const std::string& verdict) {
    say("h2",
        "nft add table inet wall; nft add chain inet wall input '{ type filter hook input priority 0; }'; "
        "nft add rule inet wall input iifname eth0 ct state new tcp dport 1024-65535 " +
            verdict);
  }
};

TEST_F(CheckNetwork, AHealthyClusterIsClean) {
  Checked checked = check(kHosts);
  EXPECT_EQ(checked.outcome.exit_code, 0) << checked.all();
  for (const base::Json& finding : checked.json["findings"]) EXPECT_EQ(finding["severity"], "note") << checked.all();
}

TEST_F(CheckNetwork, PortsThatDrop) {
  firewall("drop");
  expect_fixed(kHosts, "NET-PORT-DROPPED", "h2");
}

TEST_F(CheckNetwork, PortsThatAreReset) {
  firewall("reject with tcp reset");
  expect_fixed(kHosts, "NET-PORT-REFUSED", "h2");
}

TEST_F(CheckNetwork, PortsThatAreRejected) {
  firewall("reject");
  expect_fixed(kHosts, "NET-PORT-REJECTED", "h2");
}

TEST_F(CheckNetwork, PortsProhibitedByAnAdministrator) {
  firewall("reject with icmpx admin-prohibited");
  expect_fixed(kHosts, "NET-PROHIBITED", "h2");
}

TEST_F(CheckNetwork, NoRoute) {
  say("h2", "ip route add unreachable 10.77.0.3/32");
  expect_fixed(kHosts, "NET-NO-ROUTE", "h2");
}

TEST_F(CheckNetwork, AHoleForLargePackets) {
  // The kernel hands a virtual link what a card would cut into packets: without this the rule would see 64 KiB, whatever the MTU.
  for (const std::string& host : cluster().hosts()) say(host, "ip link set dev eth0 gso_max_segs 1");
  say("h2",
      "nft add table inet hole; nft add chain inet hole input '{ type filter hook input priority 0; }'; "
      "nft add rule inet hole input iifname eth0 tcp dport != 22 meta length '>' 1400 drop");
  expect_fixed(kHosts, "NET-MTU-HOLE", "h2");
}

TEST_F(CheckNetwork, TheSameDecoyAddressEverywhere) {
  for (const std::string& host : cluster().hosts())
    say(host, "ip link add ib0 type veth peer name ib0p; ip addr add 192.168.122.1/24 dev ib0; ip link set ib0 up; ip link set ib0p up");
  expect_fixed(kHosts, "NET-SAME-DECOY", "h1");
}

TEST_F(CheckNetwork, AnInterfaceNameThatIsMissing) {
  expect(check(with(kHosts, {"--env", "NCCL_SOCKET_IFNAME=eth7"})), "NET-IFNAME-MISSING", "h2");
  expect_gone(check(with(kHosts, {"--env", "NCCL_SOCKET_IFNAME=eth0"})), "NET-IFNAME-MISSING");
}

TEST_F(CheckNetwork, HostsInDifferentSubnets) {
  // h3 moves to a network of its own; ctl still reaches it by a route, the others do not.
  say("h3", "ip addr flush dev eth0; ip addr add 10.99.0.3/24 dev eth0; ip route add 10.77.255.1/32 dev eth0");
  say("ctl",
      "ip route add 10.99.0.3/32 dev eth0; cp /etc/hosts /tmp/hosts; sed -i 's/^10.77.0.3 /10.99.0.3 /; s/^10.77.0.3\\t/10.99.0.3\\t/' "
      "/tmp/hosts; cat /tmp/hosts > /etc/hosts");
  Checked checked = check(kHosts);
  expect(checked, "NET-DIFF-SUBNET", "h3");
  EXPECT_EQ(checked.outcome.exit_code, 3) << checked.all();
}

TEST_F(CheckNetwork, AThrottledLink) {
  ASSERT_TRUE(cluster().throttle("h2", "50mbit").ok());
  expect(check(kHosts), "NET-SLOW-LINK", "h2");
  ASSERT_TRUE(cluster().heal("h2").ok());
  expect_gone(check(kHosts), "NET-SLOW-LINK");
}

TEST_F(CheckNetwork, TheOwnNameIsLoopback) {
  say("h2", "cp /etc/hosts /tmp/hosts; (echo '127.0.1.1 h2'; grep -v ' h2$' /tmp/hosts | grep -v '\\sh2$') > /etc/hosts");
  expect(check(kHosts), "RDZV-NAME-LOOPBACK", "h2");
  say("h2", "cat /tmp/hosts > /etc/hosts");
  expect_gone(check(kHosts), "RDZV-NAME-LOOPBACK");
}

TEST_F(CheckNetwork, TwoHostsWithOneName) {
  say("h2", "hostname h1");
  expect_fixed(kHosts, "RDZV-DUPLICATE-HOSTNAME", "h2");
}

TEST_F(CheckNetwork, APortHeldByAnOrphan) {
  say("h1",
      "setsid sh -c 'cd /tmp; python3 -m http.server 29511 > /tmp/http.log 2>&1 &' ; for i in $(seq 100); do ss -ltn | grep -q :29511 && "
      "exit 0; sleep 0.05; done; exit 1");
  expect_fixed(with(kHosts, {"--master-port", "29511"}), "RDZV-PORT-TAKEN", "h1");
}

}  // namespace
