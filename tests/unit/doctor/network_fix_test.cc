// The commands that network findings print are typed for real, in a network namespace, and what was closed is open then.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "base/text.h"
#include "cases.h"
#include "doctor/views/mesh_view.h"
#include "machine/probe.h"
#include "os/fd.h"
#include "os/guarded.h"
#include "os/net.h"

namespace phalanx::doctor::test {
namespace {

// Can 10.77.0.2 connect to the listener? 0, or what the kernel said; ETIMEDOUT after 400 ms of silence.
int connect_from_peer(const os::Endpoint& to) {
  os::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in from{}, there{};
  from.sin_family = there.sin_family = AF_INET;
  ::inet_pton(AF_INET, "10.77.0.2", &from.sin_addr);
  ::inet_pton(AF_INET, to.address.c_str(), &there.sin_addr);
  there.sin_port = htons(to.port);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&from), sizeof(from)) != 0) return errno;
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&there), sizeof(there)) == 0) return 0;
  pollfd waiting{fd.get(), POLLOUT, 0};
  if (errno != EINPROGRESS) return errno;
  return ::poll(&waiting, 1, 400) == 1 ? os::connect_outcome(fd.get()) : ETIMEDOUT;
}

bool run(const std::string& command) { return std::system((command + " 2>/dev/null").c_str()) == 0; }

// "skip …" where the machine cannot; "before|after|the command".
std::string close_and_open(const std::string& rule) {
  if (::unshare(CLONE_NEWNET) != 0) return "skip unshare";
  for (const char* command :
       {"ip link set lo up", "ip addr add 10.77.0.1/24 dev lo", "ip addr add 10.77.0.2/24 dev lo", "nft add table inet guard",
        "nft 'add chain inet guard entry { type filter hook input priority 0; policy accept; }'"})
    if (!run(command)) return std::string("skip ") + command;
  if (!run("nft 'add rule inet guard entry " + rule + "'")) return "skip " + rule;
  base::Result<os::Listener> listener = os::listen_tcp({"10.77.0.1", 29500});
  if (!listener.ok()) return "no listener";
  int before = connect_from_peer(listener->endpoint);
  Situation s;
  s.hosts.resize(2);
  for (size_t h : {0, 1}) {
    s.hosts[h].name = h ? "gpu02" : "gpu01";
    s.hosts[h].probed = true;
    s.hosts[h].facts.network = machine::probe_network({});
    s.hosts[h].address = h ? "10.77.0.2" : "10.77.0.1";
    s.hosts[h].interface = "lo";
  }
  std::string command = base::replace_all(open_firewall(s, 0), "sudo ", "");
  if (!run(command)) return "does not run: " + command;
  return std::to_string(before) + "|" + std::to_string(connect_from_peer(listener->endpoint)) + "|" + command;
}

class Firewall : public testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(Firewall, TheCommandOpensWhatWasClosed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root for a network namespace";
  auto [rule, error] = GetParam();
  std::string text = rule;
  base::Result<std::string> said = os::run_guarded({{"namespace", [&] { return close_and_open(text); }}}, std::chrono::seconds(20)).at(0);
  ASSERT_TRUE(said.ok());
  if (said->substr(0, 4) == "skip") GTEST_SKIP() << "cannot be set up here: " << *said;
  EXPECT_EQ(*said, std::to_string(error) + "|0|nft insert rule inet guard entry ip saddr 10.77.0.0/24 accept");
}
INSTANTIATE_TEST_SUITE_P(Rules, Firewall,
                         testing::Values(std::pair{"tcp dport 29500 drop", ETIMEDOUT},
                                         std::pair{"tcp dport 29500 reject with tcp reset", ECONNREFUSED},
                                         std::pair{"ip saddr 10.77.0.0/24 tcp dport 1024-65535 drop", ETIMEDOUT}));

TEST(Blame, OneHostStandsBehindAllItsLinks) {
  Situation s = plain_ethernet();
  for (hosts::Link& l : s.mesh.links)
    if (l.from == 2 || l.to == 2) l.outcome = wire::LinkOutcome::kTimeout;
  std::vector<Blame> all = blame(s, [](const hosts::Link& l) { return l.outcome == wire::LinkOutcome::kTimeout; });
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].hosts, std::vector<size_t>{2});
  EXPECT_EQ(all[0].links.size(), 6u);
}

TEST(Blame, OfTwoHostsWithNothingElseBothAreNamed) {
  Situation s = docker_host_network();
  for (hosts::Link& l : s.mesh.links) l.outcome = wire::LinkOutcome::kTimeout;
  std::vector<Blame> all = blame(s, [](const hosts::Link& l) { return l.outcome == wire::LinkOutcome::kTimeout; });
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].hosts, (std::vector<size_t>{0, 1}));
}

TEST(Blame, LinksOfHostsThatAreNotInTheListAreLeftOut) {
  Situation s = plain_ethernet();
  s.mesh.links[0].to = 99;
  s.mesh.links[1].from = -1;
  EXPECT_EQ(links_of(s).size(), s.mesh.links.size() - 2);
  for (const Row* row : catalogue()) {
    if (row->page().group->folder != "network") continue;
    std::vector<Finding> found;
    Findings findings(*row, found);
    row->look(s, findings);
    for (const Finding& f : found)
      for (size_t h : f.hosts) EXPECT_LT(h, s.hosts.size()) << row->code;
  }
}

TEST(FirewallCommand, OfTheServiceThatRuns) {
  Situation s = plain_ethernet();
  s.hosts[1].facts.network.firewalls = {"firewalld active"};
  s.hosts[2].facts.network.firewalls = {"ufw enabled"};
  EXPECT_EQ(open_firewall(s, 1), "sudo firewall-cmd --permanent --zone=trusted --add-source=192.168.20.0/24 && sudo firewall-cmd --reload");
  EXPECT_EQ(open_firewall(s, 2), "sudo ufw allow from 192.168.20.0/24");
  EXPECT_EQ(open_firewall(s, 3), "sudo iptables -I INPUT -s 192.168.20.0/24 -j ACCEPT");
}

}  // namespace
}  // namespace phalanx::doctor::test
