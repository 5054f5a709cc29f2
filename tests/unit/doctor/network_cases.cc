// Each NET- row: a healthy cluster with one realistic fault, and the nearest state that is still well.
#include "cases.h"

namespace phalanx::doctor::test {
namespace {

machine::Interface& card(Situation& s, size_t h, const std::string& name) {
  for (machine::Interface& i : s.hosts[h].facts.network.interfaces)
    if (i.name == name) return i;
  return s.hosts[h].facts.network.interfaces.back();
}

// A further interface, before those that are there: as one with a lower index.
machine::Interface& add(Situation& s, size_t h, const std::string& name, const std::string& kind, const std::string& address,
                        int64_t prefix, bool first = false) {
  machine::Interface i;
  i.name = name;
  i.kind = kind;
  i.state = "up";
  i.up = i.running = i.carrier = true;
  i.mtu = 1500;
  if (!address.empty()) i.addresses = {{address, prefix, address.find(':') != std::string::npos, ""}};
  auto& all = s.hosts[h].facts.network.interfaces;
  return *all.insert(first ? all.begin() + 1 : all.end(), i);
}

hosts::Link* link(Situation& s, int64_t from, int64_t to) {
  for (hosts::Link& l : s.mesh.links)
    if (l.from == from && l.to == to) return &l;
  return nullptr;
}

void fail(hosts::Link& l, const std::string& outcome, int64_t error, int64_t ns) {
  l.outcome = wire::link_outcome(outcome).value();
  l.error_number = error;
  l.connect_ns = ns;
  l.round_trip_ns = l.bytes_per_second = 0;
}

// All links towards host `to` end so.
auto towards(int64_t to, std::string outcome, int64_t error, int64_t ns) {
  return [=](Situation& s) {
    for (hosts::Link& l : s.mesh.links)
      if (l.to == to) fail(l, outcome, error, ns);
  };
}

void set(Situation& s, const std::string& name, const std::string& value) { s.job.set.emplace_back(name, value); }
void set_on(Situation& s, size_t h, const std::string& name, const std::string& value) {
  s.hosts[h].facts.software.environment[name] = value;
}
const std::string& own(const Situation& s, size_t h) { return s.hosts[h].address; }

void move_to(Situation& s, size_t h, const std::string& address, int64_t prefix = 24) {
  card(s, h, s.hosts[h].interface).addresses = {{address, prefix, false, ""}};
  s.hosts[h].address = address;
}
void forget_mesh(Situation& s) {
  s.mesh.links.clear();
  for (HostView& h : s.hosts) h.facts.network.routes.clear();
}

void add_mesh_cases(std::vector<Case>& all) {
  struct {
    const char* code;
    const char* outcome;
    int64_t error, ns;
    const char* other;  // what looks alike and is another code's
  } const kinds[] = {{"NET-PORT-DROPPED", "timeout", 110, 3'000'000'000, "refused"},
                     {"NET-PORT-REFUSED", "refused", 111, 200'000, "rejected"},
                     {"NET-PORT-REJECTED", "rejected", 111, 1'010'000'000, "refused"},
                     {"NET-PROHIBITED", "prohibited", 113, 1'010'000'000, "unreachable"},
                     {"NET-NO-ROUTE", "no-route", 101, 10'000, "unreachable"},
                     {"NET-UNREACHABLE", "unreachable", 113, 3'100'000'000, "prohibited"},
                     {"NET-MTU-HOLE", "stalled", 110, 200'000, "timeout"},
                     {"NET-STRANGER", "stranger", 0, 200'000, "ok"},
                     {"NET-CONNECT-ERROR", "error", 99, 10'000, "timeout"}};
  for (const auto& k : kinds) {
    all.push_back(hit(k.code, "all links towards one host", plain_ethernet, towards(2, k.outcome, k.error, k.ns)));
    all.push_back(
        hit(k.code, "one link of two hosts", docker_host_network, [k](Situation& s) { fail(*link(s, 0, 1), k.outcome, k.error, k.ns); }));
    all.push_back(miss(k.code, "another way to fail", plain_ethernet, towards(2, k.other, k.error, k.ns)));
  }
  all.push_back(hit("NET-ONE-WAY", "a firewall on one host", plain_ethernet, towards(1, "timeout", 110, 3'000'000'000)));
  all.push_back(miss("NET-ONE-WAY", "both ways fail", plain_ethernet, [](Situation& s) {
    fail(*link(s, 0, 1), "timeout", 110, 3'000'000'000);
    fail(*link(s, 1, 0), "timeout", 110, 3'000'000'000);
  }));
}

void everywhere_virbr(Situation& s, bool first) {
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    add(s, h, "virbr0", "bridge", "192.168.122.1", 24, first);
    s.hosts[h].facts.software.nccl = {{"/x/libnccl.so.2", "2.18.5+cuda12.1"}};
  }
}

void add_choice_cases(std::vector<Case>& all) {
  all.push_back(hit("NET-SAME-DECOY", "virbr0 comes before the card", plain_ethernet, [](Situation& s) { everywhere_virbr(s, true); }));
  all.push_back(miss("NET-SAME-DECOY", "virbr0 comes after the card", plain_ethernet, [](Situation& s) { everywhere_virbr(s, false); }));
  all.push_back(miss("NET-SAME-DECOY", "NCCL 2.28 passes over virbr0", plain_ethernet, [](Situation& s) {
    everywhere_virbr(s, true);
    for (HostView& h : s.hosts) h.facts.software.nccl[0].version = "2.28.3+cuda12.9";
  }));
  all.push_back(miss("NET-SAME-DECOY", "the card is named", plain_ethernet, [](Situation& s) {
    everywhere_virbr(s, true);
    set(s, "NCCL_SOCKET_IFNAME", "=eno1");
  }));
  all.push_back(miss("NET-SAME-DECOY", "one machine, listed twice", plain_ethernet, [](Situation& s) {
    s.hosts.resize(2);
    s.hosts[1].facts.machine.boot_id = s.hosts[0].facts.machine.boot_id;
    move_to(s, 1, own(s, 0));
  }));
  all.push_back(hit("NET-IFNAME-DECOY", "docker0 by name", docker_host_network, [](Situation& s) {
    for (size_t h : {0, 1}) card(s, h, "docker0").running = true;
    set(s, "NCCL_SOCKET_IFNAME", "docker0");
  }));
  all.push_back(
      miss("NET-IFNAME-DECOY", "bond0 by name", docker_host_network, [](Situation& s) { set(s, "NCCL_SOCKET_IFNAME", "bond0"); }));
  all.push_back(hit("NET-WRONG-IFACE", "a VPN on one host comes first", plain_ethernet,
                    [](Situation& s) { add(s, 2, "tailscale0", "vpn", "100.64.0.7", 32, true); }));
  all.push_back(hit("NET-WRONG-IFACE", "a storage network on one host, without a route to it", plain_ethernet, [](Situation& s) {
    add(s, 1, "eno0", "physical", "10.9.0.5", 24, true);
    s.hosts[0].facts.network.routes.push_back({"10.9.0.5", "", "", "", 0, "Network is unreachable"});
  }));
  all.push_back(miss("NET-WRONG-IFACE", "another network, and every host has a route to it", plain_ethernet, [](Situation& s) {
    add(s, 1, "eno0", "physical", "10.9.0.5", 24, true);
    for (size_t h : {0, 2, 3}) s.hosts[h].facts.network.routes.push_back({"10.9.0.5", "eno1", own(s, h), "192.168.20.1", 1500, ""});
  }));
  all.push_back(miss("NET-WRONG-IFACE", "the VPN comes after the card", plain_ethernet,
                     [](Situation& s) { add(s, 2, "tailscale0", "vpn", "100.64.0.7", 32); }));
  all.push_back(hit("NET-DOWN-IFACE", "ib0 without a cable has an address still", plain_ethernet, [](Situation& s) {
    for (size_t h = 0; h < 4; ++h) {
      machine::Interface& ib = add(s, h, "ib0", "infiniband", "10.3.0.1" + std::to_string(h), 24);
      ib.running = ib.carrier = false;
      ib.state = "down";
      s.hosts[h].facts.software.nccl = {{"/x/libnccl.so.2", "2.20.5+cuda12.4"}};
    }
  }));
  all.push_back(miss("NET-DOWN-IFACE", "the same with NCCL 2.28", plain_ethernet, [](Situation& s) {
    machine::Interface& ib = add(s, 0, "ib0", "infiniband", "10.3.0.1", 24);
    ib.running = false;
    s.hosts[0].facts.software.nccl = {{"/x/libnccl.so.2", "2.28.3+cuda12.9"}};
  }));
}

void add_far_choice_cases(std::vector<Case>& all) {
  all.push_back(hit("NET-LINK-LOCAL", "an ib0 with fe80:: only", plain_ethernet,
                    [](Situation& s) { add(s, 1, "ib0", "infiniband", "fe80::1", 64); }));
  all.push_back(miss("NET-LINK-LOCAL", "IPv4 asked for", plain_ethernet, [](Situation& s) {
    add(s, 1, "ib0", "infiniband", "fe80::1", 64);
    set(s, "NCCL_SOCKET_FAMILY", "AF_INET");
  }));
  auto in_docker = [](Situation& s) {
    for (size_t h : {0, 1}) {
      s.hosts[h].facts.network.interfaces.resize(1);
      add(s, h, "eth0", "veth", "172.17.0." + std::to_string(2 + h), 16);
      s.hosts[h].address = "172.17.0." + std::to_string(2 + h);
      s.hosts[h].interface = "eth0";
    }
    s.mesh.links.clear();
  };
  all.push_back(hit("NET-DOCKER-BRIDGE", "containers without the host's network", docker_host_network, in_docker));
  all.push_back(miss("NET-DOCKER-BRIDGE", "an overlay that was tried", docker_host_network, [in_docker](Situation& s) {
    std::vector<hosts::Link> links = s.mesh.links;
    in_docker(s);
    s.mesh.links = links;
  }));
  all.push_back(hit("NET-VPN-PATH", "the chosen address is WireGuard's", plain_ethernet, [](Situation& s) {
    for (size_t h = 0; h < 4; ++h) card(s, h, "eno1").kind = "vpn";
  }));
  all.push_back(
      miss("NET-VPN-PATH", "a VPN beside the card", plain_ethernet, [](Situation& s) { add(s, 0, "wg0", "vpn", "10.8.0.2", 24); }));
}

void add_ifname_cases(std::vector<Case>& all) {
  all.push_back(hit("NET-IFNAME-MISSING", "eth0, as the notes say, where the card is bond0", bond_infiniband,
                    [](Situation& s) { set(s, "NCCL_SOCKET_IFNAME", "eth0"); }));
  all.push_back(hit("NET-IFNAME-MISSING", "one host calls its card otherwise", docker_host_network, [](Situation& s) {
    for (size_t h : {0, 1}) set_on(s, h, "NCCL_SOCKET_IFNAME", "bond0");
    card(s, 1, "bond0").name = "bond1";
  }));
  all.push_back(hit("NET-IFNAME-MISSING", "a prefix for Gloo", plain_ethernet, [](Situation& s) { set(s, "GLOO_SOCKET_IFNAME", "eno"); }));
  all.push_back(hit("NET-IFNAME-MISSING", "the configuration file of NCCL", docker_host_network,
                    [](Situation& s) { s.hosts[1].facts.software.nccl_conf["NCCL_SOCKET_IFNAME"] = "ens5"; }));
  all.push_back(miss("NET-IFNAME-MISSING", "a prefix for NCCL", plain_ethernet, [](Situation& s) { set(s, "NCCL_SOCKET_IFNAME", "eno"); }));
  all.push_back(hit("NET-IFNAME-STRAY", "NCCL's variable on a machine without GPUs", plain_ethernet,
                    [](Situation& s) { set_on(s, 2, "NCCL_SOCKET_IFNAME", "eth0"); }));
  all.push_back(miss("NET-IFNAME-STRAY", "it is there", plain_ethernet, [](Situation& s) { set_on(s, 2, "NCCL_SOCKET_IFNAME", "eno1"); }));
  all.push_back(hit("NET-IFNAME-PREFIX", "eno1 takes eno1np0 too", plain_ethernet, [](Situation& s) {
    add(s, 0, "eno1np0", "physical", "10.50.0.1", 24);
    set(s, "NCCL_SOCKET_IFNAME", "eno1");
  }));
  all.push_back(miss("NET-IFNAME-PREFIX", "with =", plain_ethernet, [](Situation& s) {
    add(s, 0, "eno1np0", "physical", "10.50.0.1", 24);
    set(s, "NCCL_SOCKET_IFNAME", "=eno1");
  }));
  all.push_back(
      hit("NET-IFNAME-NEEDLESS", "what NCCL takes anyway", plain_ethernet, [](Situation& s) { set(s, "NCCL_SOCKET_IFNAME", "eno1"); }));
  all.push_back(miss("NET-IFNAME-NEEDLESS", "it makes a difference on one host", plain_ethernet, [](Situation& s) {
    add(s, 3, "ens9", "physical", "10.50.0.1", 24, true);
    set(s, "NCCL_SOCKET_IFNAME", "eno1");
  }));
  all.push_back(
      hit("NET-IFNAME-BLANK", "a blank after the comma", plain_ethernet, [](Situation& s) { set(s, "NCCL_SOCKET_IFNAME", "eno1, ib0"); }));
  all.push_back(miss("NET-IFNAME-BLANK", "no blank", plain_ethernet, [](Situation& s) { set(s, "NCCL_SOCKET_IFNAME", "eno1,ib0"); }));
  all.push_back(
      hit("NET-GLOO-SYNTAX", "NCCL's exclusion", plain_ethernet, [](Situation& s) { set(s, "GLOO_SOCKET_IFNAME", "^docker0,lo"); }));
  all.push_back(miss("NET-GLOO-SYNTAX", "a name", plain_ethernet, [](Situation& s) { set(s, "GLOO_SOCKET_IFNAME", "eno1"); }));
  all.push_back(hit("NET-FAMILY", "ipv4", plain_ethernet, [](Situation& s) { set(s, "NCCL_SOCKET_FAMILY", "ipv4"); }));
  all.push_back(miss("NET-FAMILY", "AF_INET", plain_ethernet, [](Situation& s) { set(s, "NCCL_SOCKET_FAMILY", "AF_INET"); }));
}

void add_host_cases(std::vector<Case>& all) {
  all.push_back(hit("NET-DIFF-SUBNET", "one host elsewhere, nothing tried", plain_ethernet, [](Situation& s) {
    forget_mesh(s);
    move_to(s, 3, "192.168.21.14");
  }));
  all.push_back(
      miss("NET-DIFF-SUBNET", "elsewhere, and it was reached", plain_ethernet, [](Situation& s) { move_to(s, 3, "192.168.21.14"); }));
  all.push_back(miss("NET-DIFF-SUBNET", "a routed fabric of /31", plain_ethernet, [](Situation& s) {
    forget_mesh(s);
    for (size_t h = 0; h < 4; ++h) move_to(s, h, "10.0.0." + std::to_string(2 * h + 1), 31);
  }));
  auto no_way = [](Situation& s, bool all_of_them) {
    for (machine::Route& r : s.hosts[0].facts.network.routes)
      if (r.to == own(s, 2)) r.error = "Network is unreachable";
    if (!all_of_them) s.hosts[0].facts.network.routes.push_back({"10.5.0.2", "ens9", "10.5.0.1", "", 1500, ""});
    if (!all_of_them) add(s, 2, "ens9", "physical", "10.5.0.2", 24);
    s.mesh.links.clear();
  };
  all.push_back(hit("NET-NO-SHARED-NETWORK", "no route to any address", plain_ethernet, [no_way](Situation& s) { no_way(s, true); }));
  all.push_back(
      miss("NET-NO-SHARED-NETWORK", "one of two addresses has a route", plain_ethernet, [no_way](Situation& s) { no_way(s, false); }));
  all.push_back(hit("NET-DUPLICATE-ADDRESS", "a clone", plain_ethernet, [](Situation& s) { move_to(s, 3, own(s, 2)); }));
  all.push_back(miss("NET-DUPLICATE-ADDRESS", "one machine, listed twice", plain_ethernet, [](Situation& s) {
    move_to(s, 3, own(s, 2));
    s.hosts[3].facts.machine.boot_id = s.hosts[2].facts.machine.boot_id;
  }));
  all.push_back(hit("NET-ADDRESS-TYPO", "192.169 for 192.168", plain_ethernet, [](Situation& s) { move_to(s, 1, "192.169.20.12"); }));
  all.push_back(miss("NET-ADDRESS-TYPO", "another private network", plain_ethernet, [](Situation& s) { move_to(s, 1, "192.168.21.12"); }));
  all.push_back(miss("NET-ADDRESS-TYPO", "a public address of its own, beside the private one", plain_ethernet,
                     [](Situation& s) { add(s, 1, "eno2", "physical", "192.169.20.12", 24); }));
  all.push_back(
      hit("NET-MASTER-TYPO", "192.169 for 192.168", plain_ethernet, [](Situation& s) { s.job.master_address = "192.169.20.11"; }));
  all.push_back(miss("NET-MASTER-TYPO", "right", plain_ethernet, [](Situation& s) { s.job.master_address = "192.168.20.11"; }));
  all.push_back(miss("NET-MASTER-TYPO", "a machine that is not in the list", plain_ethernet,
                     [](Situation& s) { s.job.master_address = "192.168.20.99"; }));
  auto twice = [](Situation& s, int64_t rp_filter) {
    add(s, 0, "eno2", "physical", "192.168.20.111", 24);
    s.hosts[0].facts.network.rp_filter = rp_filter;
  };
  all.push_back(hit("NET-RP-FILTER", "two cards in one network", plain_ethernet, [twice](Situation& s) { twice(s, 1); }));
  all.push_back(miss("NET-RP-FILTER", "loose", plain_ethernet, [twice](Situation& s) { twice(s, 2); }));
  all.push_back(hit("NET-ARP-FLUX", "two cards in one network", plain_ethernet, [twice](Situation& s) { twice(s, 0); }));
  all.push_back(miss("NET-ARP-FLUX", "two addresses on one card", plain_ethernet,
                     [](Situation& s) { card(s, 0, "eno1").addresses.push_back({"192.168.20.111", 24, false, ""}); }));
  all.push_back(hit("NET-PORT-RANGE", "100 ports", plain_ethernet, [](Situation& s) { s.hosts[0].facts.network.port_range_high = 32867; }));
  all.push_back(
      miss("NET-PORT-RANGE", "1000 ports", plain_ethernet, [](Situation& s) { s.hosts[0].facts.network.port_range_high = 33767; }));
  all.push_back(hit("NET-FIREWALL", "firewalld, nothing tried", plain_ethernet, [](Situation& s) {
    s.mesh.links.clear();
    s.hosts[0].facts.network.firewalls = {"firewalld active"};
  }));
  all.push_back(miss("NET-FIREWALL", "firewalld, and all links pass", plain_ethernet,
                     [](Situation& s) { s.hosts[0].facts.network.firewalls = {"firewalld active"}; }));
  all.push_back(hit("NET-IPV6-MIXED", "off on one", plain_ethernet, [](Situation& s) { s.hosts[0].facts.network.ipv6_disabled = true; }));
  all.push_back(miss("NET-IPV6-MIXED", "off on all", plain_ethernet, [](Situation& s) {
    for (HostView& h : s.hosts) h.facts.network.ipv6_disabled = true;
  }));
}

// Every link of host h in that direction at this rate; the others as a busy small machine would show them.
auto rates(int64_t h, bool out, int64_t rate, int64_t best = 0) {
  return [=](Situation& s) {
    int64_t noise = 0;
    for (hosts::Link& l : s.mesh.links) {
      l.bytes_per_second = 300'000'000 + 217'000'000 * (noise++ % 5);
      if ((out ? l.from : l.to) == h) l.bytes_per_second = rate;
    }
    if (best > 0) link(s, out ? h : 0, out ? 0 : h)->bytes_per_second = best;
  };
}

void add_link_cases(std::vector<Case>& all) {
  all.push_back(hit("NET-SLOW-LINK", "100 Mbit/s out of one host", plain_ethernet, rates(2, true, 12'000'000)));
  all.push_back(hit("NET-SLOW-LINK", "100 Mbit/s into one host", plain_ethernet, rates(2, false, 12'000'000)));
  all.push_back(miss("NET-SLOW-LINK", "one slow burst of three", plain_ethernet, rates(2, true, 12'000'000, 400'000'000)));
  all.push_back(miss("NET-SLOW-LINK", "half as fast, on busy machines", plain_ethernet, rates(2, true, 280'000'000)));
  all.push_back(hit("NET-SLOW-LINK", "of two hosts, one sends at 100 Mbit/s", docker_host_network,
                    [](Situation& s) { link(s, 0, 1)->bytes_per_second = 12'000'000; }));
  all.push_back(miss("NET-SLOW-LINK", "of two hosts, one sends at half the rate", docker_host_network,
                     [](Situation& s) { link(s, 0, 1)->bytes_per_second = 1'100'000'000; }));
  all.push_back(hit("NET-LOSS", "one host loses packets", plain_ethernet, [](Situation& s) {
    for (hosts::Link& l : s.mesh.links) {
      l.segments = 3000;
      if (l.from == 1 || l.to == 1) l.retransmits = 60;
    }
  }));
  all.push_back(miss("NET-LOSS", "two packets of a few that were sent", plain_ethernet, [](Situation& s) {
    for (hosts::Link& l : s.mesh.links) {
      l.segments = 8;
      if (l.from == 1 || l.to == 1) l.retransmits = 1;
    }
  }));
  all.push_back(miss("NET-LOSS", "all hosts do", plain_ethernet, [](Situation& s) {
    for (hosts::Link& l : s.mesh.links) l.retransmits = 60, l.segments = 3000;
  }));
  all.push_back(hit("NET-SPEED-DIFFERS", "1 Gbit/s among 10", plain_ethernet, [](Situation& s) { card(s, 1, "eno1").speed_mbps = 1000; }));
  all.push_back(miss("NET-SPEED-DIFFERS", "25 Gbit/s among 10", docker_host_network, [](Situation& s) {
    for (size_t h : {0, 1})
      card(s, h, "bond0").kind = "virtio", card(s, h, "bond0").speed_mbps = h ? 1000 : 10'000;  // made up by the driver
  }));
  auto gigabit = [](Situation& s) {
    for (size_t h : {0, 1}) card(s, h, "bond0").speed_mbps = 1000;
  };
  all.push_back(hit("NET-SLOW-NIC", "1 Gbit/s between GPU hosts", docker_host_network, gigabit));
  all.push_back(miss("NET-SLOW-NIC", "1 Gbit/s between machines without GPUs", plain_ethernet, [](Situation& s) {
    for (size_t h = 0; h < 4; ++h) card(s, h, "eno1").speed_mbps = 1000;
  }));
  all.push_back(hit("NET-RX-ERRORS", "one in a thousand", plain_ethernet, [](Situation& s) {
    card(s, 0, "eno1").rx_packets = 10'000'000;
    card(s, 0, "eno1").rx_errors = 10'000;
  }));
  all.push_back(miss("NET-RX-ERRORS", "one in a million", plain_ethernet, [](Situation& s) {
    card(s, 0, "eno1").rx_packets = 10'000'000'000;
    card(s, 0, "eno1").rx_errors = 10'000;
  }));
  all.push_back(hit("NET-MTU-DIFFERS", "jumbo on one host", plain_ethernet, [](Situation& s) { card(s, 0, "eno1").mtu = 9000; }));
  all.push_back(miss("NET-MTU-DIFFERS", "jumbo on all", plain_ethernet, [](Situation& s) {
    for (size_t h = 0; h < 4; ++h) card(s, h, "eno1").mtu = 9000;
  }));
  auto changes = [](Situation& s, int64_t count, int64_t days) {
    card(s, 0, "eno1").carrier_changes = count;
    s.hosts[0].facts.network.uptime_s = days * 86'400;
  };
  all.push_back(hit("NET-FLAPS", "40 changes in three days", plain_ethernet, [changes](Situation& s) { changes(s, 40, 3); }));
  all.push_back(miss("NET-FLAPS", "40 changes in a hundred days", plain_ethernet, [changes](Situation& s) { changes(s, 40, 100); }));
  all.push_back(miss("NET-FLAPS", "6 changes since this morning's boot", plain_ethernet, [changes](Situation& s) { changes(s, 6, 0); }));
  all.push_back(
      hit("NET-BOND-DEGRADED", "one link of two", bond_infiniband, [](Situation& s) { card(s, 0, "bond0").slaves[1].up = false; }));
  all.push_back(miss("NET-BOND-DEGRADED", "a bond that is not used", bond_infiniband, [](Situation& s) {
    machine::Interface& spare = add(s, 0, "bond1", "bond", "", 0);
    spare.slaves = {{"ens7", false, 0}, {"ens8", false, 0}};
  }));
  all.push_back(
      hit("NET-BOND-UNEQUAL", "1 and 25 Gbit/s", bond_infiniband, [](Situation& s) { card(s, 0, "bond0").slaves[1].speed_mbps = 1000; }));
  all.push_back(miss("NET-BOND-UNEQUAL", "one speed is not known", bond_infiniband,
                     [](Situation& s) { card(s, 0, "bond0").slaves[1].speed_mbps = 0; }));
}

}  // namespace

std::vector<Case> network_cases() {
  std::vector<Case> all;
  add_mesh_cases(all);
  add_choice_cases(all);
  add_far_choice_cases(all);
  add_ifname_cases(all);
  add_host_cases(all);
  add_link_cases(all);
  return all;
}

}  // namespace phalanx::doctor::test
