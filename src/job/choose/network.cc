// Over which network the ranks meet.
//
// What travels there: the rendezvous and NCCL's bootstrap (little), Gloo's collectives (checkpoints, CPU tensors), and everything
// where NCCL has no verbs. So it must hold first and be fast second:
//
// 1. Only addresses that can be one host's and no other's. docker0 is 172.17.0.1 and virbr0 is 192.168.122.1 on every machine:
//    whoever dials them meets itself. An address that two hosts have is no candidate, whatever its interface is called.
// 2. By kind. Hardware first: cards, bonds, VLANs, virtio, and bridges that have a card in them (how virtual-machine hosts are
//    wired). Then what may be all a container has (veth). Then tunnels, which work and are slow. A bridge without a port, docker0
//    and their like never leave the machine. IPv4 link-local addresses are last: two machines on one cable may have nothing else.
// 3. Within a kind by the speed of its slowest host, a speed that nobody tells (Wi-Fi, some virtual cards) last.
//    IPv4 before IPv6, unless the hosts are named by the IPv6 addresses of the same cards.
// 4. Equal so far: the network in which the hosts' names lie, since that is where the administrator expects traffic; then
//    the order of the interfaces.
//
// IPoIB counts as just over 1 Gbit/s, so that any faster Ethernet goes before it. Its speed is no gain while NCCL uses verbs, which do not
// pass through it, and it depends on the subnet manager and on multicast groups: it comes up late, and goes when the
// manager does, and then the job would not even meet to say so. With 1 Gbit/s beside it that is worth bearing: Gloo, and NCCL if verbs
// fail, would otherwise crawl.
#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "job/choose/parts.h"
#include "job/choose/subnet.h"

namespace phalanx::job {
namespace {

using doctor::HostView;
using doctor::Situation;
using machine::Interface;

constexpr int64_t kIpoibCountsAs = 1001;  // Mbit/s

enum class Kind { kHardware, kContainer, kTunnel, kLinkLocal };

struct HostAddress {
  const Interface* interface = nullptr;
  NumericAddress address;
  std::string text;
  int64_t prefix = 0;
  Kind kind = Kind::kHardware;
};

bool has_hardware_port(const HostView& host, const Interface& bridge) {
  return std::any_of(host.facts.network.interfaces.begin(), host.facts.network.interfaces.end(), [&](const Interface& port) {
    return port.master == bridge.name && (port.kind == "physical" || port.kind == "bond" || port.kind == "vlan" || port.kind == "virtio");
  });
}

std::optional<Kind> kind_of(const HostView& host, const Interface& interface) {
  if (interface.loopback || interface.kind == "loopback" || interface.kind == "docker") return std::nullopt;
  if (interface.kind == "bridge") return has_hardware_port(host, interface) ? std::optional(Kind::kHardware) : std::nullopt;
  if (interface.kind == "vpn") return Kind::kTunnel;
  if (interface.kind == "veth" || interface.kind == "virtual") return Kind::kContainer;
  return Kind::kHardware;
}

// What the hosts' names mean on any host.
using Named = std::map<std::string, std::set<std::string>>;

Named meanings(const Situation& situation) {
  Named named;
  for (const HostView& host : situation.hosts) named[host.name] = {host.name};
  for (const HostView& host : situation.hosts)
    for (const machine::Resolved& r : host.facts.network.names)
      if (auto found = named.find(r.name); found != named.end()) found->second.insert(r.addresses.begin(), r.addresses.end());
  return named;
}

// One look at all hosts, for questions about each of them.
struct All {
  const Situation& situation;
  std::map<std::string, int> owned = owners(situation);
  Named named = meanings(situation);

  bool is_named(size_t h, const std::string& address) const { return named.at(situation.hosts[h].name).count(address) > 0; }
};

// IPv6 beside IPv4 on one interface. Gloo and NCCL take the first address of an interface, and IPv4 is listed first: IPv6 is theirs only
// where it is alone, or where the user's word for the host means it and no other.
bool hidden_v6(const All& all, size_t h, const Interface& i, const std::string& address) {
  bool v4 = false, v4_named = false;
  for (const machine::InterfaceAddressFact& a : i.addresses) {
    v4 = v4 || !a.v6;
    v4_named = v4_named || (!a.v6 && all.is_named(h, a.address));
  }
  return v4 && (v4_named || !all.is_named(h, address));
}

std::vector<HostAddress> addresses_of(const All& all, size_t h, const std::string& wanted) {
  const HostView& host = all.situation.hosts[h];
  std::vector<HostAddress> found;
  std::vector<std::string_view> names = base::split(wanted, ',');
  for (const Interface& i : host.facts.network.interfaces) {
    bool asked = !wanted.empty() && std::find(names.begin(), names.end(), i.name) != names.end();
    if ((!wanted.empty() && !asked) || !i.up || !i.running) continue;
    std::optional<Kind> kind = kind_of(host, i);
    if (asked && !i.loopback) kind = kind.value_or(Kind::kContainer);  // --iface docker0: the user's word
    if (!kind) continue;
    for (const machine::InterfaceAddressFact& a : i.addresses) {
      std::optional<NumericAddress> address = parse_address(a.address);
      if (!address || address->loopback() || (address->v6 && address->link_local()) || all.owned.at(a.address) > 1) continue;
      if (address->v6 && hidden_v6(all, h, i, a.address)) continue;
      found.push_back({&i, *address, a.address, a.prefix, address->link_local() ? Kind::kLinkLocal : *kind});
    }
  }
  return found;
}

int64_t counted_speed(const HostAddress& c) { return c.interface->kind == "infiniband" ? kIpoibCountsAs : c.interface->speed_mbps; }

bool better(const HostAddress& a, const HostAddress& b) { return a.kind != b.kind ? a.kind < b.kind : counted_speed(a) > counted_speed(b); }

// The best address of a host in the network of `anchor`, one of the first host.
const HostAddress* in_network(const std::vector<HostAddress>& of_host, const HostAddress& anchor) {
  const HostAddress* best = nullptr;
  for (const HostAddress& c : of_host)
    if (same_network(c.address, anchor.address, c.prefix) && same_network(c.address, anchor.address, anchor.prefix))
      if (!best || better(c, *best)) best = &c;
  return best;
}

struct Ranked {
  Network network;
  Kind kind = Kind::kHardware;
  bool v6 = false;
  int64_t counted = 0;  // Mbit/s
  size_t named = 0;     // hosts whose name resolves to their address here
};

Ranked rank(const All& all, const std::vector<const HostAddress*>& members, std::string name) {
  Ranked r;
  r.network.name = std::move(name);
  r.network.speed_mbps = members[0]->interface->speed_mbps;
  r.counted = counted_speed(*members[0]);
  for (size_t h = 0; h < members.size(); ++h) {
    const HostAddress& c = *members[h];
    r.network.addresses.push_back(c.text);
    r.network.interfaces.push_back(c.interface->name);
    r.network.speed_mbps = std::min(r.network.speed_mbps, c.interface->speed_mbps);  // one unknown: unknown
    r.counted = std::min(r.counted, counted_speed(c));
    r.kind = std::max(r.kind, c.kind);
    r.v6 = c.address.v6;
    r.named += all.is_named(h, c.text);
  }
  return r;
}

// The address that a host sends from to the others, where they are not in one network: /32 of a cloud, one rack per subnet.
const HostAddress* routed_from(const HostView& host, const std::vector<HostAddress>& of_host) {
  const HostAddress* best = nullptr;
  for (const HostAddress& c : of_host) {
    if (c.kind == Kind::kLinkLocal || c.address.v6) continue;
    for (const machine::Route& r : host.facts.network.routes)
      if (r.error.empty() && r.source == c.text) return &c;
    if (!best || better(c, *best)) best = &c;
  }
  return best;
}

}  // namespace

std::map<std::string, int> owners(const Situation& situation) {
  std::map<std::string, int> count;
  for (const HostView& host : situation.hosts) {
    std::vector<std::string> seen;
    for (const Interface& i : host.facts.network.interfaces)
      for (const machine::InterfaceAddressFact& a : i.addresses)
        if (std::find(seen.begin(), seen.end(), a.address) == seen.end()) {
          seen.push_back(a.address);
          ++count[a.address];
        }
  }
  return count;
}

std::vector<std::string> decoys(const Situation& situation, size_t host, const std::map<std::string, int>& owned) {
  std::vector<std::string> names;
  for (const Interface& i : situation.hosts[host].facts.network.interfaces) {
    if (i.loopback || i.kind == "loopback" || i.addresses.empty()) continue;
    bool shared = std::all_of(i.addresses.begin(), i.addresses.end(), [&](const auto& a) { return owned.at(a.address) > 1; });
    if (shared || !kind_of(situation.hosts[host], i)) names.push_back(i.name);
  }
  return names;
}

std::vector<Network> shared_networks(const Situation& situation, const std::string& wanted_interface) {
  if (situation.hosts.empty()) return {};
  if (situation.single() && wanted_interface.empty()) return {{{"127.0.0.1"}, {"lo"}, 0, "127.0.0.0/8"}};
  All all{situation};
  std::vector<std::vector<HostAddress>> of_hosts;
  for (size_t h = 0; h < situation.hosts.size(); ++h) of_hosts.push_back(addresses_of(all, h, wanted_interface));

  std::vector<Ranked> ranked;
  for (const HostAddress& anchor : of_hosts[0]) {
    std::vector<const HostAddress*> members;
    for (const std::vector<HostAddress>& of_host : of_hosts)
      if (const HostAddress* member = in_network(of_host, anchor)) members.push_back(member);
    std::string name = network_name(anchor.address, anchor.prefix);
    bool known = std::any_of(ranked.begin(), ranked.end(), [&](const Ranked& r) { return r.network.name == name; });
    if (members.size() == situation.hosts.size() && !known) ranked.push_back(rank(all, members, name));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    if (a.kind != b.kind) return a.kind < b.kind;
    bool same_cards = a.network.interfaces == b.network.interfaces;
    if (a.v6 != b.v6) return same_cards && a.named != b.named ? a.named > b.named : b.v6;
    if (a.counted != b.counted) return a.counted > b.counted;
    return a.named > b.named;
  });
  std::vector<Network> networks;
  for (Ranked& r : ranked) networks.push_back(std::move(r.network));
  if (!networks.empty()) return networks;

  std::vector<const HostAddress*> members;
  for (size_t h = 0; h < of_hosts.size(); ++h)
    if (const HostAddress* member = routed_from(situation.hosts[h], of_hosts[h])) members.push_back(member);
  if (members.size() == situation.hosts.size()) {
    networks.push_back(rank(all, members, "").network);
    networks.back().routed = true;
  }
  return networks;
}

}  // namespace phalanx::job
