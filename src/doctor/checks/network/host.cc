// Addresses, routes and network settings of the hosts, compared.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/settings.h"
#include "doctor/views/network_view.h"
#include "machine/network/text.h"

namespace phalanx::doctor {
namespace {

constexpr int64_t kFewPorts = 1000;

std::vector<int> octets(const std::string& address) {
  std::vector<int> out;
  if (!machine::is_address(address) || address.find(':') != std::string::npos) return out;
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
        for (const machine::Route& r : s.hosts[h].facts.network.routes)
          routed |= r.to == s.hosts[other].address && r.error.empty() && !r.gateway.empty() && !link_tried(s, h, other);
      }
      if (passed || routed) continue;
      findings.on(h, tr("{} is in {}; {} in {}", s.hosts[h].address, odd.value, names(s, odd.others), odd.usual));
    }
}

// Of what `from` was asked about `to`'s addresses, every answer is an error.
bool no_way(const Situation& s, size_t from, size_t to) {
  bool asked = false;
  for (const machine::Route& r : s.hosts[from].facts.network.routes) {
    bool theirs = r.to == s.hosts[to].address;
    for (const machine::Interface& i : s.hosts[to].facts.network.interfaces)
      for (const machine::InterfaceAddressFact& a : i.addresses) theirs |= !i.loopback && a.address == r.to;
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
    for (const machine::Interface& i : s.hosts[h].facts.network.interfaces)
      for (const machine::InterfaceAddressFact& a : i.addresses)
        if (!i.loopback) owners[a.address].insert(h);
  }
  std::vector<std::pair<size_t, size_t>> lost;
  for (size_t a : probed(s)) {
    std::set<size_t> suspects;
    for (const machine::Route& r : s.hosts[a].facts.network.routes)
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
    for (const machine::Interface& i : s.hosts[worst].facts.network.interfaces)
      for (const machine::InterfaceAddressFact& a : i.addresses)
        if (!i.loopback && !a.v6) have += fmt::format("{}{} {}/{}", have.empty() ? "" : ", ", i.name, a.address, a.prefix);
    findings.on(worst, tr("no route between it ({}) and {}", have, others));
    std::erase_if(lost, [&](const auto& pair) { return pair.first == worst || pair.second == worst; });
  }
}

void duplicate_address(const Situation& s, Findings& findings) {
  std::map<std::string, std::vector<size_t>> by_address;
  for (size_t h : probed(s))
    if (!s.hosts[h].address.empty() && !machine::is_loopback_address(s.hosts[h].address)) by_address[s.hosts[h].address].push_back(h);
  for (const auto& [address, hosts] : by_address) {
    std::set<std::string> machines;
    for (size_t h : hosts) machines.insert(network_stack(s.hosts[h]));
    if (hosts.size() < 2 || machines.size() < 2) continue;
    findings.on(hosts, tr("{} is the address of all of them", address));
  }
}

// A public address one octet away from the private network of another host, on a host that has no address in that network.
void address_typo(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  for (const machine::Interface& i : host.facts.network.interfaces)
    for (const machine::InterfaceAddressFact& a : i.addresses) {
      if (a.v6 || i.loopback || is_private(a.address) || machine::is_link_local_address(a.address) || a.prefix < 8 || a.prefix > 30)
        continue;
      auto length = static_cast<size_t>(a.prefix / 8);
      std::vector<size_t> like;
      for (size_t other : probed(s))
        if (other != h && is_private(s.hosts[other].address) && differing(a.address, s.hosts[other].address, length) == 1)
          like.push_back(other);
      if (like.empty()) continue;
      std::string network = network_of_chosen(s.hosts[like[0]]);
      bool has = false;
      for (const machine::Interface& mine : host.facts.network.interfaces)
        for (const machine::InterfaceAddressFact& b : mine.addresses) has |= machine::network_of(b.address, b.prefix) == network;
      if (has) continue;
      findings.on(h, tr("{} {}/{} is in public address space; {} in {}", i.name, a.address, a.prefix, names(s, like), network));
    }
}

void master_typo(const Situation& s, Findings& findings) {
  std::string master = s.job.master_address;
  if (master.empty() && !s.hosts.empty()) master = job_setting(s, 0, "MASTER_ADDR");
  if (octets(master).empty() || machine::is_loopback_address(master)) return;
  std::vector<std::string> known;
  for (const HostView& view : s.hosts) {
    known.push_back(view.address);
    for (const machine::Interface& i : view.facts.network.interfaces)
      for (const machine::InterfaceAddressFact& a : i.addresses) known.push_back(a.address);
  }
  if (std::find(known.begin(), known.end(), master) != known.end()) return;
  for (size_t h = 0; h < s.hosts.size(); ++h)  // the network part only: another last octet may be a machine that is not in the list
    if (differing(master, s.hosts[h].address, 4) == 1 && differing(master, s.hosts[h].address, 3) == 1)
      return findings.job(tr("MASTER_ADDR={} is not the address of any host; {} is {}", master, s.hosts[h].name, s.hosts[h].address),
                          "export MASTER_ADDR=" + s.hosts[h].address);
}

// Two interfaces that carry the same network.
std::string same_network_twice(const HostView& view) {
  std::map<std::string, std::string> seen;
  for (const machine::Interface& i : view.facts.network.interfaces)
    for (const machine::InterfaceAddressFact& a : i.addresses) {
      if (a.v6 || i.loopback || !i.running || a.prefix > 30) continue;
      if (i.kind != "physical" && i.kind != "bond" && i.kind != "infiniband" && i.kind != "virtio" && i.kind != "veth" && i.kind != "vlan")
        continue;
      auto [known, fresh] = seen.emplace(machine::network_of(a.address, a.prefix), i.name);
      if (!fresh && known->second != i.name) return known->second + ", " + i.name + ": " + known->first;
    }
  return "";
}

void reverse_path(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  std::string twice = same_network_twice(host);
  if (s.single() || twice.empty() || host.facts.network.rp_filter != 1) return;
  findings.on(h, tr("{} on both, and rp_filter=1", twice), "sudo sysctl -w net.ipv4.conf.all.rp_filter=2");
}

void two_in_one(const Situation& s, size_t h, const HostView& host, Findings& findings) {
  std::string twice = same_network_twice(host);
  if (s.single() || twice.empty() || host.facts.network.rp_filter == 1) return;
  findings.on(h, tr("{} on both", twice), "sudo sysctl -w net.ipv4.conf.all.arp_ignore=1");
}

void port_range(const Situation&, size_t h, const HostView& host, Findings& findings) {
  const machine::NetworkFacts& n = host.facts.network;
  int64_t ports = n.port_range_high - n.port_range_low + 1;
  if (n.port_range_high == 0 || ports >= kFewPorts) return;
  findings.on(h, tr("ip_local_port_range is {}–{}: {} ports", n.port_range_low, n.port_range_high, ports),
              "sudo sysctl -w net.ipv4.ip_local_port_range='32768 60999'");
}

void firewall(const Situation& s, Findings& findings) {
  if (s.single() || !s.mesh.links.empty()) return;  // what was tried is better evidence
  for (size_t h : probed(s)) {
    const machine::NetworkFacts& n = s.hosts[h].facts.network;
    std::string seen;
    for (const std::string& hint : n.firewalls)
      if (hint == "firewalld active" || hint == "ufw enabled") seen = hint;
    for (const machine::FirewallChain& c : n.chains)
      if (seen.empty() && (c.policy == "drop" || c.drops > 0)) seen = fmt::format("{} {} {} drops packets", c.tool, c.table, c.chain);
    if (!seen.empty()) findings.on(h, tr("{}; whether it blocks the job was not tested", seen));
  }
}

void ipv6_mixed(const Situation& s, Findings& findings) {
  auto key = [](const HostView& view) -> std::optional<std::string> {
    if (view.facts.network.interfaces.empty()) return std::nullopt;
    return view.facts.network.ipv6_disabled ? "off" : "on";
  };
  for (const Odd& odd : odd_ones(s, key))
    findings.on(odd.hosts, tr("IPv6 is {}; on {} it is {}", odd.value, names(s, odd.others), odd.usual));
}

constexpr Row kNetworkHostRows[] = {
    {"NET-DIFF-SUBNET", Severity::kWarning, different_subnet},
    {"NET-NO-SHARED-NETWORK", Severity::kError, no_shared_network},
    {"NET-DUPLICATE-ADDRESS", Severity::kError, duplicate_address},
    {"NET-ADDRESS-TYPO", Severity::kWarning, address_typo},
    {"NET-MASTER-TYPO", Severity::kWarning, master_typo},
    {"NET-RP-FILTER", Severity::kWarning, reverse_path},
    {"NET-ARP-FLUX", Severity::kNote, two_in_one},
    {"NET-PORT-RANGE", Severity::kWarning, port_range},
    {"NET-FIREWALL", Severity::kNote, firewall},
    {"NET-IPV6-MIXED", Severity::kNote, ipv6_mixed},
};

}  // namespace

std::span<const Row> network_host_rows() { return kNetworkHostRows; }

}  // namespace phalanx::doctor
