// Which networks the hosts share, and which of them is tried first.
#include <gtest/gtest.h>

#include "job/choose/choose.h"
#include "job/choose/subnet.h"
#include "situations.h"

namespace phalanx::job {
namespace {

using doctor::Situation;
using machine::Interface;
using Names = std::vector<std::string>;

Interface& add(Situation& s, size_t h, const char* name, const char* kind, const std::string& address, int64_t prefix, int64_t speed) {
  Interface i;
  i.name = name;
  i.kind = kind;
  i.up = i.running = i.carrier = true;
  i.speed_mbps = speed;
  i.addresses = {{address, prefix, address.find(':') != std::string::npos, ""}};
  s.hosts[h].facts.network.interfaces.push_back(i);
  return s.hosts[h].facts.network.interfaces.back();
}

std::string at(const char* prefix, size_t h) { return prefix + std::to_string(11 + h); }

Names networks(const Situation& s, const std::string& wanted = "") {
  Names names;
  for (const Network& n : shared_networks(s, wanted)) names.push_back(n.name);
  return names;
}

TEST(ChooseNetwork, HealthyClusters) {
  EXPECT_EQ(networks(doctor::test::plain_ethernet()), Names{"192.168.20.0/24"});
  EXPECT_EQ(networks(doctor::test::docker_host_network()), Names{"172.16.12.0/24"});
  EXPECT_EQ(networks(doctor::test::bond_infiniband()), (Names{"10.1.0.0/16", "10.2.0.0/24", "10.2.1.0/24", "10.2.2.0/24", "10.2.3.0/24"}));
  std::vector<Network> alone = shared_networks(doctor::test::single_machine(), "");
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].addresses, Names{"127.0.0.1"});
  EXPECT_EQ(alone[0].interfaces, Names{"lo"});
}

TEST(ChooseNetwork, TheFasterOfTwoAndTheSlowestHostCounts) {
  Situation s = doctor::test::plain_ethernet();
  for (size_t h = 0; h < 4; ++h) add(s, h, "enp1s0", "physical", at("10.9.0.", h), 24, h == 3 ? 1000 : 25'000);
  EXPECT_EQ(networks(s), (Names{"192.168.20.0/24", "10.9.0.0/24"}));
  EXPECT_EQ(shared_networks(s, "")[1].speed_mbps, 1000);
  s.hosts[3].facts.network.interfaces.back().speed_mbps = 25'000;
  EXPECT_EQ(networks(s)[0], "10.9.0.0/24");
  EXPECT_EQ(shared_networks(s, "")[0].addresses[2], "10.9.0.13");
}

TEST(ChooseNetwork, DecoysAreNoCandidates) {
  Situation s = doctor::test::plain_ethernet();
  for (size_t h = 0; h < 4; ++h) {
    add(s, h, "docker0", "docker", "172.17.0.1", 16, 10'000);
    add(s, h, "virbr0", "bridge", "192.168.122.1", 24, 10'000);
    add(s, h, "br-1f2e", "bridge", at("172.18.0.", h), 16, 10'000);  // other addresses, still without a port
    add(s, h, "bmc0", "physical", "169.254.3.1", 16, 100'000);       // the same on all: not theirs alone
    add(s, h, "down0", "physical", at("10.7.0.", h), 16, 100'000).up = false;
  }
  EXPECT_EQ(networks(s), Names{"192.168.20.0/24"});
}

TEST(ChooseNetwork, ABridgeWithACardIsHardware) {
  Situation s = doctor::test::plain_ethernet();
  for (size_t h = 0; h < 4; ++h) {
    add(s, h, "br0", "bridge", at("10.9.0.", h), 24, 25'000);
    Interface& port = add(s, h, "enp1s0", "physical", "", 0, 25'000);
    port.addresses.clear();
    port.master = "br0";
  }
  EXPECT_EQ(networks(s)[0], "10.9.0.0/24");
}

TEST(ChooseNetwork, TunnelsContainersAndLinkLocalComeLast) {
  Situation s = doctor::test::plain_ethernet();
  for (size_t h = 0; h < 4; ++h) {
    add(s, h, "tailscale0", "vpn", at("100.64.0.", h), 10, 100'000);
    add(s, h, "eth0", "veth", at("10.244.0.", h), 16, 100'000);
    add(s, h, "enp9s0", "physical", at("169.254.7.", h), 16, 100'000);
    add(s, h, "enp8s0", "physical", at("fd00::", h), 64, 100'000);
    add(s, h, "enp7s0", "physical", at("fe80::", h), 64, 100'000);
  }
  EXPECT_EQ(networks(s), (Names{"192.168.20.0/24", "fd00::/64", "10.244.0.0/16", "100.64.0.0/10", "169.254.0.0/16"}));
}

TEST(ChooseNetwork, IpoibOnlyWhereEthernetIsSlow) {
  Situation s = doctor::test::bond_infiniband();
  EXPECT_EQ(networks(s)[0], "10.1.0.0/16");
  for (doctor::HostView& h : s.hosts) h.facts.network.interfaces[1].speed_mbps = 1000;
  EXPECT_EQ(networks(s)[0], "10.2.0.0/24");
  EXPECT_EQ(networks(s).back(), "10.1.0.0/16");
}

TEST(ChooseNetwork, TheUsersWordWins) {
  Situation s = doctor::test::plain_ethernet();
  for (size_t h = 0; h < 4; ++h) add(s, h, h == 0 ? "wg0" : "wg1", "vpn", at("10.99.0.", h), 24, 0);
  EXPECT_EQ(networks(s, "wg0,wg1"), Names{"10.99.0.0/24"});
  EXPECT_EQ(networks(s, "wg0"), Names{});  // the others have no such interface
}

TEST(ChooseNetwork, EqualSpeedGoesWhereTheNamesLie) {
  Situation s = doctor::test::plain_ethernet();
  for (size_t h = 0; h < 4; ++h) {
    std::vector<Interface>& all = s.hosts[h].facts.network.interfaces;
    add(s, h, "eno0", "physical", at("10.8.0.", h), 24, 10'000);
    std::swap(all[1], all[2]);
  }
  EXPECT_EQ(networks(s), (Names{"192.168.20.0/24", "10.8.0.0/24"}));
}

TEST(ChooseNetwork, RoutedWhereNoNetworkIsShared) {
  Situation s = doctor::test::plain_ethernet();
  for (size_t h = 0; h < 4; ++h) s.hosts[h].facts.network.interfaces[1].addresses[0].prefix = 32;  // as in Google's cloud
  std::vector<Network> found = shared_networks(s, "");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].routed);
  EXPECT_EQ(found[0].addresses[3], "192.168.20.14");
  s.hosts[2].probed = false;
  s.hosts[2].facts = {};
  EXPECT_TRUE(shared_networks(s, "").empty());
}

TEST(Subnet, Arithmetic) {
  EXPECT_FALSE(parse_address("10.0.0"));
  EXPECT_FALSE(parse_address("fe80::1%eth0"));
  auto same = [](const char* a, const char* b, int64_t prefix) { return same_network(*parse_address(a), *parse_address(b), prefix); };
  EXPECT_TRUE(same("192.168.20.14", "192.168.20.15", 31));
  EXPECT_FALSE(same("192.168.20.15", "192.168.20.16", 31));
  EXPECT_FALSE(same("192.168.20.14", "192.168.20.15", 99));
  EXPECT_TRUE(same("1.2.3.4", "99.2.3.4", 0));
  EXPECT_FALSE(same("::1", "127.0.0.1", 0));
  EXPECT_EQ(network_name(*parse_address("10.129.255.3"), 9), "10.128.0.0/9");
  EXPECT_EQ(network_name(*parse_address("fd00::17"), 64), "fd00::/64");
}

std::vector<std::string> refusals(const Situation& s, const std::string& interface) {
  GpuRequest wish;
  wish.interface = interface;
  std::vector<Network> shared = shared_networks(s, interface);
  std::vector<std::string> texts;
  for (const doctor::Words& words : choose(s, wish, shared.empty() ? Network{} : shared.front()).refusals) texts.push_back(words.english);
  return texts;
}

TEST(ChooseNetwork, AnInterfaceThatLeadsNowhereIsRefused) {
  Situation s = doctor::test::plain_ethernet();
  const std::string there = s.hosts[0].facts.network.interfaces[1].name;
  EXPECT_TRUE(refusals(s, there).empty());
  std::vector<std::string> typo = refusals(s, "ens5");
  ASSERT_EQ(typo.size(), 1u);
  EXPECT_EQ(typo[0].find("--iface ens5: "), 0u) << typo[0];
  EXPECT_NE(typo[0].find(" have no interface of this name; " + s.hosts[0].name + " has lo, " + there), std::string::npos) << typo[0];
  add(s, 0, "ens5", "physical", at("10.9.0.", 0), 24, 1000);
  EXPECT_NE(refusals(s, "ens5")[0].find(s.hosts[1].name), std::string::npos) << "the other hosts still lack it";
  EXPECT_TRUE(refusals(s, there + ",ens5").empty()) << "every host has one of them";
  std::vector<std::string> loopback = refusals(s, "lo");
  ASSERT_EQ(loopback.size(), 1u);
  EXPECT_NE(loopback[0].find("share no network over this interface"), std::string::npos) << loopback[0];
  Situation alone = doctor::test::single_machine();
  EXPECT_EQ(refusals(alone, "ens55").size(), 1u);
  EXPECT_TRUE(refusals(alone, "lo").empty());
}

}  // namespace
}  // namespace phalanx::job
