// Addresses, routes and network settings of the hosts, compared.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "doctor/network_rows.h"
#include "doctor/network_view.h"
#include "doctor/settings.h"
#include "host/network_text.h"

namespace doctor {
namespace {

constexpr int64_t kFewPorts = 1000;

std::vector<int> octets(const std::string& address) {
  std::vector<int> out;
  if (!host::is_address(address) || address.find(':') != std::string::npos) return out;
  for (std::string_view part : base::split(address, '.')) out.push_back(static_cast<int>(base::parse_int(part, 0, 255).value()));
  return out;
}

// How many of the first `count` octets differ; -1: not two IPv4 addresses.
int differing(const std::string& a, const std::string& b, size_t count) {
  std::vector<int> x = octets(a), y = octets(b);
  if (x.empty() || y.empty()) return -1;
  int n = 0;
  for (size_t i = 0; i < std::min<size_t>(count, 4); ++i) n += x[i] != y[i];
  return n;
}

bool is_private(const std::string& address) {
  std::vector<int> o = octets(address);
  return !o.empty() &&
         (o[0] == 10 || (o[0] == 172 && (o[1] & 0xf0) == 16) || (o[0] == 192 && o[1] == 168) || (o[0] == 100 && (o[1] & 0xc0) == 64));
}

void different_subnet(const Situation& s, Findings& findings) {
  auto key = [](const HostView& view) -> std::optional<std::string> {
    std::string network = network_of_chosen(view);
    for (const char* tail : {"/31", "/32", "/127", "/128"})
      if (network.ends_with(tail)) return std::nullopt;  // routed fabrics: each host is a network of its own
    return network.empty() || network.starts_with("127.") ? std::nullopt : std::optional(network);
  };
  for (const Odd& odd : odd_ones(s, key))
    for (size_t h : odd.hosts) {
      bool passed = false, routed = false;
      for (size_t other : odd.others) {
        passed |= link_passed(s, h, other);
        for (const host::Route& r : s.hosts[h].facts.network.routes)
          routed |= r.to == s.hosts[other].address && r.error.empty() && !r.gateway.empty() && !link_tried(s, h, other);
      }
      if (passed || routed) continue;
      findings.on(h, {fmt::format("{} is in {}; {} in {}", s.hosts[h].address, odd.value, names(s, odd.others), odd.usual),
                      fmt::format("{} 属于 {}，而 {} 属于 {}", s.hosts[h].address, odd.value, names(s, odd.others), odd.usual)});
    }
}

// Of what `from` was asked about `to`'s addresses, every answer is an error.
bool no_way(const Situation& s, size_t from, size_t to) {
  bool asked = false;
  for (const host::Route& r : s.hosts[from].facts.network.routes) {
    bool theirs = r.to == s.hosts[to].address;
    for (const host::Interface& i : s.hosts[to].facts.network.interfaces)
      for (const host::InterfaceAddressFact& a : i.addresses) theirs |= !i.loopback && a.address == r.to;
    if (!theirs) continue;
    if (r.error.empty()) return false;
    asked = true;
  }
  return asked;
}

void no_shared_network(const Situation& s, Findings& findings) {
  std::map<std::string, std::set<size_t>> owners;  // whose an address is
  for (size_t h : probed(s)) {
    owners[s.hosts[h].address].insert(h);
    for (const host::Interface& i : s.hosts[h].facts.network.interfaces)
      for (const host::InterfaceAddressFact& a : i.addresses)
        if (!i.loopback) owners[a.address].insert(h);
  }
  std::vector<std::pair<size_t, size_t>> lost;
  for (size_t a : probed(s)) {
    std::set<size_t> suspects;
    for (const host::Route& r : s.hosts[a].facts.network.routes)
      if (auto found = owners.find(r.to); !r.error.empty() && found != owners.end())
        suspects.insert(found->second.begin(), found->second.end());
    for (size_t b : suspects)
      if (a != b && no_way(s, a, b) && !link_passed(s, a, b)) lost.emplace_back(a, b);
  }
  while (!lost.empty()) {
    std::map<size_t, int> touched;
    for (const auto& [a, b] : lost) ++touched[a], ++touched[b];
    size_t worst =
        std::max_element(touched.begin(), touched.end(), [](const auto& x, const auto& y) { return x.second < y.second; })->first;
    std::set<size_t> far;
    for (const auto& [a, b] : lost)
      if (a == worst || b == worst) far.insert(a == worst ? b : a);
    std::string others = names(s, {far.begin(), far.end()});
    std::string have;
    for (const host::Interface& i : s.hosts[worst].facts.network.interfaces)
      for (const host::InterfaceAddressFact& a : i.addresses)
        if (!i.loopback && !a.v6) have += fmt::format("{}{} {}/{}", have.empty() ? "" : ", ", i.name, a.address, a.prefix);
    findings.on(worst,
                {fmt::format("no route between it ({}) and {}", have, others), fmt::format("本机（{}）与 {} 之间没有路由", have, others)});
    std::erase_if(lost, [&](const auto& pair) { return pair.first == worst || pair.second == worst; });
  }
}

void duplicate_address(const Situation& s, Findings& findings) {
  std::map<std::string, std::vector<size_t>> by_address;
  for (size_t h : probed(s))
    if (!s.hosts[h].address.empty() && !host::is_loopback_address(s.hosts[h].address)) by_address[s.hosts[h].address].push_back(h);
  for (const auto& [address, hosts] : by_address) {
    std::set<std::string> machines;
    for (size_t h : hosts) machines.insert(network_stack(s.hosts[h]));
    if (hosts.size() < 2 || machines.size() < 2) continue;
    findings.on(hosts, {address + " is the address of each of them", "它们的地址都是 " + address});
  }
}

// A public address one octet away from the private network of another host, on a host that has no address in that network.
void address_typo(const Situation& s, Findings& findings) {
  for (size_t h : probed(s))
    for (const host::Interface& i : s.hosts[h].facts.network.interfaces)
      for (const host::InterfaceAddressFact& a : i.addresses) {
        if (a.v6 || i.loopback || is_private(a.address) || host::is_link_local_address(a.address) || a.prefix < 8 || a.prefix > 30)
          continue;
        auto length = static_cast<size_t>(a.prefix / 8);
        std::vector<size_t> like;
        for (size_t other : probed(s))
          if (other != h && is_private(s.hosts[other].address) && differing(a.address, s.hosts[other].address, length) == 1)
            like.push_back(other);
        if (like.empty()) continue;
        std::string network = network_of_chosen(s.hosts[like[0]]);
        bool has = false;
        for (const host::Interface& mine : s.hosts[h].facts.network.interfaces)
          for (const host::InterfaceAddressFact& b : mine.addresses) has |= host::network_of(b.address, b.prefix) == network;
        if (has) continue;
        findings.on(h, {fmt::format("{} {}/{} is in public address space; {} in {}", i.name, a.address, a.prefix, names(s, like), network),
                        fmt::format("{} {}/{} 属于公网地址段，而 {} 在 {}", i.name, a.address, a.prefix, names(s, like), network)});
      }
}

void master_typo(const Situation& s, Findings& findings) {
  std::string master = s.job.master_address;
  if (master.empty() && !s.hosts.empty()) master = job_setting(s, 0, "MASTER_ADDR");
  if (octets(master).empty() || host::is_loopback_address(master)) return;
  std::vector<std::string> known;
  for (const HostView& view : s.hosts) {
    known.push_back(view.address);
    for (const host::Interface& i : view.facts.network.interfaces)
      for (const host::InterfaceAddressFact& a : i.addresses) known.push_back(a.address);
  }
  if (std::find(known.begin(), known.end(), master) != known.end()) return;
  for (size_t h = 0; h < s.hosts.size(); ++h)  // the network part only: another last octet may be a machine that is not in the list
    if (differing(master, s.hosts[h].address, 4) == 1 && differing(master, s.hosts[h].address, 3) == 1)
      return findings.job({fmt::format("MASTER_ADDR={} is no host's; {} is {}", master, s.hosts[h].name, s.hosts[h].address),
                           fmt::format("MASTER_ADDR={} 不是任何主机的地址；{} 的地址是 {}", master, s.hosts[h].name, s.hosts[h].address)},
                          "export MASTER_ADDR=" + s.hosts[h].address);
}

// Two interfaces that carry the same network.
std::string same_network_twice(const HostView& view) {
  std::map<std::string, std::string> seen;
  for (const host::Interface& i : view.facts.network.interfaces)
    for (const host::InterfaceAddressFact& a : i.addresses) {
      if (a.v6 || i.loopback || !i.running || a.prefix > 30) continue;
      if (i.kind != "physical" && i.kind != "bond" && i.kind != "infiniband" && i.kind != "virtio" && i.kind != "veth" && i.kind != "vlan")
        continue;
      auto [known, fresh] = seen.emplace(host::network_of(a.address, a.prefix), i.name);
      if (!fresh && known->second != i.name) return known->second + ", " + i.name + ": " + known->first;
    }
  return "";
}

void reverse_path(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    std::string twice = same_network_twice(s.hosts[h]);
    if (s.single() || twice.empty() || s.hosts[h].facts.network.rp_filter != 1) continue;
    findings.on(h, {twice + " on both, and rp_filter=1", twice + " 两块网卡同网段，且 rp_filter=1"},
                "sudo sysctl -w net.ipv4.conf.all.rp_filter=2");
  }
}

void two_in_one(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    std::string twice = same_network_twice(s.hosts[h]);
    if (s.single() || twice.empty() || s.hosts[h].facts.network.rp_filter == 1) continue;
    findings.on(h, {twice + " on both", twice + " 两块网卡同网段"}, "sudo sysctl -w net.ipv4.conf.all.arp_ignore=1");
  }
}

void port_range(const Situation& s, Findings& findings) {
  for (size_t h : probed(s)) {
    const host::NetworkFacts& n = s.hosts[h].facts.network;
    int64_t ports = n.port_range_high - n.port_range_low + 1;
    if (n.port_range_high == 0 || ports >= kFewPorts) continue;
    findings.on(h,
                {fmt::format("ip_local_port_range is {}–{}: {} ports", n.port_range_low, n.port_range_high, ports),
                 fmt::format("ip_local_port_range 为 {}–{}，仅 {} 个端口", n.port_range_low, n.port_range_high, ports)},
                "sudo sysctl -w net.ipv4.ip_local_port_range='32768 60999'");
  }
}

void firewall(const Situation& s, Findings& findings) {
  if (s.single() || !s.mesh.links.empty()) return;  // what was tried is better evidence
  for (size_t h : probed(s)) {
    const host::NetworkFacts& n = s.hosts[h].facts.network;
    std::string seen;
    for (const std::string& hint : n.firewalls)
      if (hint == "firewalld active" || hint == "ufw enabled") seen = hint;
    for (const host::FirewallChain& c : n.chains)
      if (seen.empty() && (c.policy == "drop" || c.drops > 0)) seen = fmt::format("{} {} {} drops packets", c.tool, c.table, c.chain);
    if (!seen.empty()) findings.on(h, {seen + "; whether it lets the job through was not tried", seen + "；尚未实际测试任务流量能否通过"});
  }
}

void ipv6_mixed(const Situation& s, Findings& findings) {
  auto key = [](const HostView& view) -> std::optional<std::string> {
    if (view.facts.network.interfaces.empty()) return std::nullopt;
    return view.facts.network.ipv6_disabled ? "off" : "on";
  };
  for (const Odd& odd : odd_ones(s, key))
    findings.on(odd.hosts, {fmt::format("IPv6 is {}; on {} it is {}", odd.value, names(s, odd.others), odd.usual),
                            fmt::format("IPv6 为 {}，而 {} 上为 {}", odd.value, names(s, odd.others), odd.usual)});
}

constexpr Row kNetworkHostRows[] = {
    {"NET-DIFF-SUBNET",
     Severity::kWarning,
     Group::kNetwork,
     {"the chosen addresses lie in different networks", "各主机所选地址不在同一网段"},
     {"Are the chosen addresses in one network, or do they reach each other?", "所选地址是否在同一网段，或彼此可达？"},
     {"Address and netmask give the network; two hosts in different ones need a router between them. Without, \"No route to host\" or a "
      "timeout follows.",
      "地址与子网掩码决定网段；不同网段的主机之间必须有路由，否则会出现 “No route to host” 或超时。"},
     {"Compare address and netmask on the hosts, and choose an interface they share:\n$ ip -br -4 address\n$ phalanx check --iface "
      "<interface> -H <hosts>",
      "对比各主机的地址与掩码，选择共有网络的网卡：\n$ ip -br -4 address\n$ phalanx check --iface <interface> -H <hosts>"},
     "",
     different_subnet},
    {"NET-NO-SHARED-NETWORK",
     Severity::kError,
     Group::kNetwork,
     {"there is no way between two hosts", "两台主机之间没有可用的网络"},
     {"Is there at least one address of each host to which the others have a route?", "每台主机是否至少有一个地址是其他主机有路由可达的？"},
     {"The kernel has no route to any of the other's addresses. They are in networks that do not touch, or an interface lacks its address "
      "or is down.",
      "内核对另一台主机的所有地址都没有路由：两者的网络互不相连，或某块网卡没有地址或未启用。"},
     {"Give both an address in one network, or add a route:\n$ ip -br address\n$ sudo ip address add <address>/<prefix length> dev "
      "<interface>",
      "给双方配置同一网段的地址，或添加路由：\n$ ip -br address\n$ sudo ip address add <address>/<prefix length> dev <interface>"},
     "RTM_GETROUTE",
     no_shared_network},
    {"NET-DUPLICATE-ADDRESS",
     Severity::kError,
     Group::kNetwork,
     {"two hosts have the same address", "两台主机使用了同一个 IP 地址"},
     {"Does every host have an address of its own?", "每台主机的地址是否互不相同？"},
     {"Cloned machines often keep their address. Packets go to whichever answered ARP last: connections break at random, or both ranks are "
      "one.",
      "克隆出来的机器常保留原来的地址。数据包发给最后应答 ARP 的那台，连接会随机中断，或者两个 rank 实际上在同一台机器上。"},
     {"Change one of them:\n$ sudo arping -D -I <interface> -c 3 <address>\n$ sudo ip address replace <address>/<prefix length> dev "
      "<interface>",
      "修改其中一台：\n$ sudo arping -D -I <interface> -c 3 <address>\n$ sudo ip address replace <address>/<prefix length> dev "
      "<interface>"},
     "",
     duplicate_address},
    {"NET-ADDRESS-TYPO",
     Severity::kWarning,
     Group::kNetwork,
     {"an interface has a public address one octet from the others' private network", "网卡的公网地址与其他主机的私网地址只差一个字节"},
     {"Are all addresses in the network the hosts share?", "所有地址是否都在各主机共有的网段内？"},
     {"192.168.0.0/16 is private, 192.169.0.0/16 belongs to somebody on the internet. The two look alike; with the wrong one packets go to "
      "the default "
      "gateway and vanish. The private ranges are 10.*, 172.16–31.* and 192.168.*.",
      "192.168.0.0/16 是私网，192.169.0.0/16 是互联网上别人的地址，两者很容易看错；写错后数据包会发往默认网关并消失。私网地址段只有 "
      "10.*、172.16–31.* 和 192.168.*。"},
     {"$ sudo ip address replace <address>/<prefix length> dev <interface>",
      "$ sudo ip address replace <address>/<prefix length> dev <interface>"},
     "RFC 1918",
     address_typo},
    {"NET-MASTER-TYPO",
     Severity::kWarning,
     Group::kNetwork,
     {"MASTER_ADDR is one octet away from a host's address", "MASTER_ADDR 与某台主机的地址只差一个字节"},
     {"Is MASTER_ADDR an address of one of the hosts?", "MASTER_ADDR 是否为某台主机的地址？"},
     {"A mistyped octet (192.169.20.14 for 192.168.20.14) is a valid address of nobody here. All ranks wait: \"The client socket has timed "
      "out after …ms while "
      "trying to connect to (…)\".",
      "写错一个字节（把 192.168.20.14 写成 192.169.20.14）仍是合法地址，只是不属于任何主机。所有 rank 都会等到超时：“The client socket has "
      "timed out after …ms while "
      "trying to connect to (…)”。"},
     {"$ export MASTER_ADDR=<address>\nor leave it out: phalanx run sets it.",
      "$ export MASTER_ADDR=<address>\n或者不设置，由 phalanx run 设置。"},
     "",
     master_typo},
    {"NET-RP-FILTER",
     Severity::kWarning,
     Group::kNetwork,
     {"two cards in one network and a strict return-path filter", "两块网卡同网段且启用了严格反向路径过滤"},
     {"With several cards in one network, does rp_filter let packets come in on either?",
      "多块网卡同网段时，rp_filter 是否允许数据包从任一网卡进入？"},
     {"Linux answers through the first card of the network. With rp_filter=1 what arrives on the second is thrown away in silence: "
      "connections work in one "
      "direction, or to one of the addresses only.",
      "Linux 通过该网段的第一块网卡回包；rp_filter=1 时，从第二块网卡到达的包会被静默丢弃：连接只有单向可通，或只有其中一个地址可用。"},
     {"$ sudo sysctl -w net.ipv4.conf.all.rp_filter=2", "$ sudo sysctl -w net.ipv4.conf.all.rp_filter=2"},
     "linux Documentation/networking/ip-sysctl",
     reverse_path},
    {"NET-ARP-FLUX",
     Severity::kNote,
     Group::kNetwork,
     {"two cards of a host are in one network", "主机有两块网卡位于同一网段"},
     {"Is each network on one card only?", "每个网段是否只在一块网卡上？"},
     {"Either card answers ARP for both addresses, and all traffic leaves by the first: the second brings no bandwidth. Use one network "
      "per card, or bond them.",
      "任一网卡都会应答两个地址的 ARP，而流量全部从第一块发出，第二块并不增加带宽。应每块网卡一个网段，或做成 bond。"},
     {"$ sudo sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2",
      "$ sudo sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2"},
     "",
     two_in_one},
    {"NET-PORT-RANGE",
     Severity::kWarning,
     Group::kNetwork,
     {"there are few ephemeral ports", "临时端口数量过少"},
     {"Are there enough ports for the connections of a job?", "端口数量是否足够任务建立连接？"},
     {"Every pair of ranks opens several connections (NCCL bootstrap, proxies, sockets, Gloo, the store). With a small ip_local_port_range "
      "connect fails with "
      "\"Cannot assign requested address\" (errno 99).",
      "每对 rank 会建立多条连接（NCCL bootstrap、proxy、socket、Gloo、store）。ip_local_port_range 太小时 connect 会报 “Cannot assign "
      "requested address”（errno 99）。"},
     {"$ sudo sysctl -w net.ipv4.ip_local_port_range='32768 60999'", "$ sudo sysctl -w net.ipv4.ip_local_port_range='32768 60999'"},
     "",
     port_range},
    {"NET-FIREWALL",
     Severity::kNote,
     Group::kNetwork,
     {"a firewall is active on a host", "主机上启用了防火墙"},
     {"Is a firewall active, and was it tried?", "是否启用了防火墙，是否已实测？"},
     {"NCCL and Gloo listen on ephemeral ports, so opening the master port alone is not enough. The connections between the hosts have not "
      "been tried here.",
      "NCCL 和 Gloo 在临时端口上监听，只放行 master 端口不够。这里尚未测试主机之间的连接。"},
     {"$ sudo firewall-cmd --permanent --zone=trusted --add-source=<subnet> && sudo firewall-cmd --reload\n$ sudo ufw allow from <subnet>",
      "$ sudo firewall-cmd --permanent --zone=trusted --add-source=<subnet> && sudo firewall-cmd --reload\n$ sudo ufw allow from <subnet>"},
     "",
     firewall},
    {"NET-IPV6-MIXED",
     Severity::kNote,
     Group::kNetwork,
     {"IPv6 is off on some hosts only", "只有部分主机关闭了 IPv6"},
     {"Is IPv6 on, or off, on all hosts?", "各主机的 IPv6 设置是否一致？"},
     {"torch first tries IPv6 and says \"Address family not supported by protocol\" (errno 97) where it is off; it goes on with IPv4, so "
      "the line alone is "
      "harmless. A name with only an IPv6 address does not work on those hosts.",
      "torch 会先尝试 IPv6，关闭时报 “Address family not supported by protocol”（errno 97），随后改用 IPv4，单独这一行无害。但只有 IPv6 "
      "地址的名字在这些主机上无法使用。"},
     {"$ sudo sysctl -w net.ipv6.conf.all.disable_ipv6=0", "$ sudo sysctl -w net.ipv6.conf.all.disable_ipv6=0"},
     "torch/csrc/distributed/c10d/socket.cpp",
     ipv6_mixed},
};

}  // namespace

std::span<const Row> network_host_rows() { return kNetworkHostRows; }

}  // namespace doctor
