// The network probe in real network namespaces with the names that mislead, and over trees that stand in for a machine.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/json_fields.h"
#include "machine/network/links.h"
#include "machine/network/nccl_interface.h"
#include "machine/network/text.h"
#include "machine/probe.h"
#include "os/files.h"
#include "os/guarded.h"
#include "scratch.h"

namespace phalanx::machine {
namespace {

using namespace std::chrono_literals;

struct Answer {
  NetworkFacts facts;
  std::string trouble;
};
template <typename V>
void fields(V& v, Answer& a) {
  v("facts", a.facts);
  v("trouble", a.trouble);
}

// In a network, mount and host name namespace of its own: runs the commands, then the probe.
Answer probe_in_namespace(const std::vector<std::string>& commands, const ProbeRequest& request, const std::string& hosts_file = "",
                          const std::string& hostname = "gpu01") {
  auto call = [&] {
    Answer a;
    if (::unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS) != 0) a.trouble = "unshare";
    ::sethostname(hostname.c_str(), hostname.size());
    ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (!hosts_file.empty() && ::mount(hosts_file.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) != 0) a.trouble = "bind /etc/hosts";
    for (const std::string& command : commands)
      if (a.trouble.empty() && std::system((command + " 2>/dev/null").c_str()) != 0) a.trouble = command;
    if (a.trouble.empty()) {
      a.facts = probe_network(request);
      a.facts.names = resolve_names(request);
      a.facts.choices = socket_choices(a.facts, request.environment, 0);
    }
    return base::to_text(base::to_json(a));
  };
  base::Result<std::string> text = os::run_guarded({{"namespace", call}}, 20s).at(0);
  EXPECT_TRUE(text.ok());
  if (!text.ok()) return {{}, "no answer"};
  return base::from_json<Answer>(base::parse_json(*text).value()).value();
}

#define NEEDS_ROOT() \
  if (::geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces"

const Interface* named(const NetworkFacts& facts, const std::string& name) {
  for (const Interface& i : facts.interfaces)
    if (i.name == name) return &i;
  return nullptr;
}

const SocketChoice* choice(const NetworkFacts& facts, const std::string& library) {
  for (const SocketChoice& c : facts.choices)
    if (c.library == library) return &c;
  return nullptr;
}

std::string new_root() { return scratch::folder("network-test"); }

void put(const std::string& path, const std::string& text) {
  ASSERT_TRUE(os::make_folders(path.substr(0, path.rfind('/'))).ok());
  std::ofstream(path) << text;
}

const std::vector<std::string> kDecoys = {
    "ip link set lo up",
    "ip link add virbr0 type bridge",
    "ip addr add 192.168.122.1/24 dev virbr0",
    "ip link set virbr0 up",
    "ip link add tailscale0 type veth peer name far1",
    "ip addr add 100.64.0.7/32 dev tailscale0",
    "ip link add eth0 mtu 1400 type veth peer name far2",
    "ip addr add 10.77.0.1/24 dev eth0",
    "ip addr add 10.77.0.2/24 dev eth0 label eth0:1",
    "ip link set far2 up && ip link set eth0 up",
    "ip link add docker0 type bridge",
    "ip addr add 172.17.0.1/16 dev docker0",
    "ip route add 10.99.0.0/16 via 10.77.0.254",
    "ip route add unreachable 10.98.0.0/16",
};

TEST(Network, ANamespaceFullOfDecoys) {
  NEEDS_ROOT();
  ProbeRequest request;
  request.peers = {{"gpu02", {"10.77.0.9", "10.99.1.1", "10.98.0.1", "203.0.113.9"}}};
  Answer a = probe_in_namespace(kDecoys, request);
  if (!a.trouble.empty()) GTEST_SKIP() << "cannot be set up here: " << a.trouble;
  const NetworkFacts& f = a.facts;
  ASSERT_NE(named(f, "eth0"), nullptr);
  const Interface& eth0 = *named(f, "eth0");
  EXPECT_EQ(eth0.kind, "veth");
  EXPECT_EQ(eth0.mtu, 1400);
  EXPECT_TRUE(eth0.up && eth0.running && eth0.carrier);
  EXPECT_GE(eth0.carrier_changes, 1);
  ASSERT_GE(eth0.addresses.size(), 2u);
  EXPECT_EQ(eth0.addresses[0].address, "10.77.0.1");
  EXPECT_EQ(eth0.addresses[0].prefix, 24);
  EXPECT_EQ(eth0.addresses[1].label, "eth0:1");
  EXPECT_EQ(named(f, "virbr0")->kind, "bridge");
  EXPECT_EQ(named(f, "docker0")->kind, "docker");
  EXPECT_FALSE(named(f, "docker0")->running);
  EXPECT_EQ(named(f, "tailscale0")->kind, "vpn");
  EXPECT_TRUE(named(f, "lo")->loopback);

  ASSERT_EQ(f.routes.size(), 4u);
  EXPECT_EQ(f.routes[0].interface, "eth0");
  EXPECT_EQ(f.routes[0].source, "10.77.0.1");
  EXPECT_EQ(f.routes[0].gateway, "");
  EXPECT_EQ(f.routes[0].mtu, 1400);
  EXPECT_EQ(f.routes[1].gateway, "10.77.0.254");
  EXPECT_EQ(f.routes[2].error, "No route to host");
  EXPECT_EQ(f.routes[3].error, "Network is unreachable");
  EXPECT_EQ(f.port_range_low, 32768);
  EXPECT_EQ(f.port_range_high, 60999);
  EXPECT_GT(f.uptime_s, 0);
  ASSERT_NE(choice(f, "nccl"), nullptr);
  EXPECT_EQ(choice(f, "nccl")->interface, "eth0") << "virbr0 and tailscale0 do not run, and the newest rules pass over virbr";
}

// The same kernel list walked by getifaddrs itself and by the facts: the order must be the same, or the replay is of no use.
TEST(Network, AddressesComeBackInGetifaddrsOrder) {
  NEEDS_ROOT();
  std::vector<std::string> commands = kDecoys;
  commands.push_back("ip link add six type veth peer name far6 && ip -6 addr add fd00:6::1/64 dev six nodad && ip link set six up");
  commands.push_back("ip -6 addr add fd00:7::1/64 dev eth0 nodad");
  std::string listing = new_root() + "/order";
  commands.push_back("ip -o address > " + listing);  // one line per address, both families together per link
  Answer a = probe_in_namespace(commands, {});
  if (!a.trouble.empty()) GTEST_SKIP() << "cannot be set up here: " << a.trouble;
  std::vector<AddressLine> lines = parse_ip_addresses(os::read_file(listing, 1 << 20).value());
  std::vector<ListedAddress> listed = listed_addresses(a.facts.interfaces);
  std::vector<std::string> ours, theirs;
  for (bool v6 : {false, true})
    for (const AddressLine& line : lines)
      if (line.address.v6 == v6) theirs.push_back(line.interface + " " + line.address.address);
  for (const ListedAddress& l : listed) ours.push_back(l.interface + " " + l.address);
  EXPECT_EQ(ours, theirs);
}

TEST(Network, NftChainsAreNamed) {
  NEEDS_ROOT();
  Answer a = probe_in_namespace(
      {"nft add table inet guard", "nft 'add chain inet guard entry { type filter hook input priority 0; policy accept; }'",
       "nft add rule inet guard entry tcp dport 29500 drop", "nft add rule inet guard entry tcp dport 29501 reject",
       "nft 'add chain inet guard leave { type filter hook output priority 0; policy accept; }'"},
      {});
  if (!a.trouble.empty()) GTEST_SKIP() << "cannot be set up here: " << a.trouble;
  ASSERT_EQ(a.facts.chains.size(), 1u);
  EXPECT_EQ(a.facts.chains[0].table, "inet guard");
  EXPECT_EQ(a.facts.chains[0].chain, "entry");
  EXPECT_EQ(a.facts.chains[0].drops, 1);
  EXPECT_EQ(a.facts.chains[0].rejects, 1);
  ASSERT_EQ(a.facts.firewalls.size(), 1u);
  EXPECT_EQ(a.facts.firewalls[0], "nft: inet guard entry, policy accept, 2 rules");
}

TEST(Network, TheOwnNameOnALoopbackAddressIsSeen) {
  NEEDS_ROOT();
  std::string hosts = new_root() + "/hosts";
  put(hosts, "127.0.0.1 localhost\n127.0.1.1\tgpu01.lan gpu01 # debian's installer\n10.77.0.2 gpu02\n");
  ProbeRequest request;
  request.peers = {{"gpu02", {}}, {"gpu03.invalid", {}}};
  request.names = {"gpu02", "10.0.0.1"};
  Answer a = probe_in_namespace({"ip link set lo up"}, request, hosts);
  if (!a.trouble.empty()) GTEST_SKIP() << "cannot be set up here: " << a.trouble;
  EXPECT_EQ(a.facts.hosts_file_loopback_name, "127.0.1.1 gpu01.lan gpu01");
  ASSERT_EQ(a.facts.names.size(), 3u);
  EXPECT_EQ(a.facts.names[0].name, "gpu01");
  EXPECT_EQ(a.facts.names[0].addresses, std::vector<std::string>{"127.0.1.1"});
  EXPECT_EQ(a.facts.names[1].addresses, std::vector<std::string>{"10.77.0.2"});
  EXPECT_FALSE(a.facts.names[2].error.empty());
  EXPECT_TRUE(a.facts.names[2].addresses.empty());
  EXPECT_EQ(choice(a.facts, "gloo")->address, "127.0.1.1");
  EXPECT_EQ(choice(a.facts, "c10d")->interface, "lo");
}

// A name server that swallows every question costs the deadline of that one name.
TEST(Network, ASilentNameServerCostsItsNameOnly) {
  NEEDS_ROOT();
  std::string folder = new_root();
  put(folder + "/hosts", "10.77.0.2 gpu02\n10.77.0.1 gpu01\n");
  put(folder + "/resolv.conf", "nameserver 10.77.0.99\n");
  ProbeRequest request;
  request.deadline = 1500ms;
  request.peers = {{"gpu02", {}}, {"lost.example.org", {}}};
  Answer a = probe_in_namespace({"mount --bind " + folder + "/resolv.conf /etc/resolv.conf", "ip link set lo up",
                                 "ip link add eth0 type veth peer name far", "ip addr add 10.77.0.1/24 dev eth0", "ip link set far up",
                                 "ip link set eth0 up", "ip neigh add 10.77.0.99 lladdr 02:00:00:00:00:99 dev eth0 nud permanent"},
                                request, folder + "/hosts");
  if (!a.trouble.empty()) GTEST_SKIP() << "cannot be set up here: " << a.trouble;
  ASSERT_EQ(a.facts.names.size(), 3u);
  EXPECT_EQ(a.facts.names[1].addresses, std::vector<std::string>{"10.77.0.2"});
  EXPECT_NE(a.facts.names[2].error.find("no answer for"), std::string::npos) << a.facts.names[2].error;
}

TEST(Network, ThisMachine) {
  NetworkFacts facts = probe_network({});
  ASSERT_NE(named(facts, "lo"), nullptr);
  EXPECT_EQ(named(facts, "lo")->kind, "loopback");
  EXPECT_GT(facts.port_range_high, facts.port_range_low);
  EXPECT_GT(facts.somaxconn, 0);
  for (const Interface& i : facts.interfaces) EXPECT_GT(i.mtu, 0) << i.name;
}

// --- trees -------------------------------------------------------------------------------------------------------------------
TEST(NetworkTree, ABondWithALostSlaveAndAnInfinibandInterface) {
  std::string root = new_root();
  std::string net = root + "/sys/class/net/";
  auto link = [&](const std::string& name, const std::string& index, const std::string& type, const std::string& speed) {
    put(net + name + "/ifindex", index + "\n");
    put(net + name + "/type", type + "\n");
    put(net + name + "/flags", "0x1003\n");
    put(net + name + "/operstate", "up\n");
    put(net + name + "/carrier", "1\n");
    put(net + name + "/carrier_changes", "17\n");
    put(net + name + "/mtu", "9000\n");
    put(net + name + "/speed", speed + "\n");
  };
  link("bond0", "4", "1", "25000");
  put(net + "bond0/uevent", "DEVTYPE=bond\nINTERFACE=bond0\n");
  link("ib0", "5", "32", "200000");
  link("ens1", "2", "1", "-1");
  ASSERT_EQ(::symlink("../../../0000:3b:00.0", (net + "ens1/device").c_str()), 0);
  put(root + "/proc/net/bonding/bond0",
      "Ethernet Channel Bonding Driver: v6.1\n\nMII Status: up\n\nSlave Interface: ens1\nMII Status: up\nSpeed: 25000 Mbps\n"
      "Slave Interface: ens2\nMII Status: down\nSpeed: Unknown\n");
  put(root + "/ip-address",
      "1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever\n"
      "4: bond0    inet 10.1.0.11/16 brd 10.1.255.255 scope global bond0\\       valid_lft forever\n"
      "5: ib0    inet 10.2.0.11/24 scope global ib0\n5: ib0    inet6 fe80::1/64 scope link \n");
  put(root + "/etc/hosts", "127.0.1.1 gpu01\n10.1.0.12 gpu02\n");
  put(root + "/etc/hostname", "gpu01\n");
  put(root + "/etc/ufw/ufw.conf", "# x\nENABLED=yes\n");
  put(root + "/proc/sys/net/ipv4/ip_local_port_range", "1024\t65535\n");
  ProbeRequest request;
  request.root = root;
  request.peers = {{"gpu02", {}}};
  NetworkFacts f = probe_network(request);
  ASSERT_NE(named(f, "bond0"), nullptr);
  EXPECT_EQ(named(f, "bond0")->kind, "bond");
  ASSERT_EQ(named(f, "bond0")->slaves.size(), 2u);
  EXPECT_TRUE(named(f, "bond0")->slaves[0].up);
  EXPECT_EQ(named(f, "bond0")->slaves[0].speed_mbps, 25'000);
  EXPECT_FALSE(named(f, "bond0")->slaves[1].up);
  EXPECT_EQ(named(f, "ib0")->kind, "infiniband");
  EXPECT_EQ(named(f, "ib0")->addresses.size(), 2u);
  EXPECT_EQ(named(f, "ens1")->kind, "physical");
  EXPECT_EQ(named(f, "ens1")->speed_mbps, 0);
  EXPECT_EQ(f.firewalls, std::vector<std::string>{"ufw enabled"});
  EXPECT_EQ(f.port_range_low, 1024);
  EXPECT_EQ(f.hosts_file_loopback_name, "127.0.1.1 gpu01");
  EXPECT_EQ(resolve_names(request).at(1).addresses, std::vector<std::string>{"10.1.0.12"});
  EXPECT_EQ(nccl_choice(f.interfaces, {}).interface, "ib0");
}

TEST(NetworkText, Addresses) {
  EXPECT_EQ(network_of("192.168.20.14", 24), "192.168.20.0/24");
  EXPECT_EQ(network_of("10.1.2.3", 15), "10.0.0.0/15");
  EXPECT_EQ(network_of("fd00:1::9", 64), "fd00:1::/64");
  EXPECT_EQ(network_of("gpu01", 24), "");
  EXPECT_TRUE(is_link_local_address("fe80::1") && is_link_local_address("169.254.3.4") && !is_link_local_address("192.168.0.1"));
  EXPECT_TRUE(is_loopback_address("::1") && is_loopback_address("127.0.1.1") && !is_loopback_address("::2"));
}

TEST(NetworkText, IptablesInput) {
  std::vector<FirewallChain> c = parse_iptables("-P INPUT DROP\n-A INPUT -i lo -j ACCEPT\n-A INPUT -p tcp -j REJECT --reject-with x\n");
  ASSERT_EQ(c.size(), 1u);
  EXPECT_EQ(c[0].policy, "drop");
  EXPECT_EQ(c[0].rules, 2);
  EXPECT_EQ(c[0].rejects, 1);
  EXPECT_TRUE(parse_iptables("iptables: Permission denied\n").empty());
}

}  // namespace
}  // namespace phalanx::machine
