// Interfaces, routes, names and TCP settings of one machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx::machine {

struct InterfaceAddressFact {
  std::string address;  // numeric
  int64_t prefix = 0;
  bool v6 = false;
  std::string label{};  // where it is not the interface's name: "eth0:1", which is the name getifaddrs gives
};
template <typename V>
void fields(V& v, InterfaceAddressFact& f) {
  v("address", f.address);
  v("prefix", f.prefix);
  v("v6", f.v6);
  v("label", f.label);
}

struct BondSlave {
  std::string name;
  bool up = false;
  int64_t speed_mbps = 0;
};
template <typename V>
void fields(V& v, BondSlave& f) {
  v("name", f.name);
  v("up", f.up);
  v("speed_mbps", f.speed_mbps);
}

struct Interface {
  std::string name;
  std::string kind;   // "physical", "bond", "bridge", "veth", "docker", "vpn", "virtual", "loopback", "infiniband", "vlan", "virtio"
  std::string state;  // operstate: "up", "down", "unknown"
  bool up = false, running = false, loopback = false;
  bool carrier = false;
  int64_t carrier_changes = 0;
  int64_t mtu = 0;
  int64_t speed_mbps = 0;  // 0: unknown
  int64_t rx_errors = 0, rx_dropped = 0, tx_errors = 0;
  int64_t rx_packets = 0, tx_packets = 0;
  std::string mac, driver, pci;
  int64_t numa_node = -1;
  std::string master;  // bond or bridge it belongs to
  std::vector<BondSlave> slaves;
  std::vector<InterfaceAddressFact> addresses;  // in the order of getifaddrs
};
template <typename V>
void fields(V& v, Interface& f) {
  v("name", f.name);
  v("kind", f.kind);
  v("state", f.state);
  v("up", f.up);
  v("running", f.running);
  v("loopback", f.loopback);
  v("carrier", f.carrier);
  v("carrier_changes", f.carrier_changes);
  v("mtu", f.mtu);
  v("speed_mbps", f.speed_mbps);
  v("rx_errors", f.rx_errors);
  v("rx_dropped", f.rx_dropped);
  v("tx_errors", f.tx_errors);
  v("rx_packets", f.rx_packets);
  v("tx_packets", f.tx_packets);
  v("mac", f.mac);
  v("driver", f.driver);
  v("pci", f.pci);
  v("numa_node", f.numa_node);
  v("master", f.master);
  v("slaves", f.slaves);
  v("addresses", f.addresses);
}

// The kernel's answer to "how would you send to this address".
struct Route {
  std::string to;
  std::string interface;
  std::string source;   // the address it would send from
  std::string gateway;  // empty: on the link
  int64_t mtu = 0;
  std::string error;  // "Network is unreachable"
};
template <typename V>
void fields(V& v, Route& f) {
  v("to", f.to);
  v("interface", f.interface);
  v("source", f.source);
  v("gateway", f.gateway);
  v("mtu", f.mtu);
  v("error", f.error);
}

struct Resolved {
  std::string name;
  std::vector<std::string> addresses;
  std::string error;  // "Name or service not known"
  int64_t took_ns = 0;
};
template <typename V>
void fields(V& v, Resolved& f) {
  v("name", f.name);
  v("addresses", f.addresses);
  v("error", f.error);
  v("took_ns", f.took_ns);
}

// What a library would choose here, by a replay of its rules (nccl_interface.h).
struct SocketChoice {
  std::string library;    // "nccl", "gloo", "c10d"
  std::string interface;  // empty: it would fail
  std::string address;
  std::string why;  // "NCCL_SOCKET_IFNAME=eth0 matches eth0", "first that is not docker or lo"
};
template <typename V>
void fields(V& v, SocketChoice& f) {
  v("library", f.library);
  v("interface", f.interface);
  v("address", f.address);
  v("why", f.why);
}

// A chain of the packet filter that sees what comes in (hook input), as far as we may read it (root).
struct FirewallChain {
  std::string tool;    // "nft", "iptables"
  std::string table;   // "inet filter"; "filter" of iptables
  std::string chain;   // "input"
  std::string policy;  // "accept", "drop"
  int64_t rules = 0;
  int64_t drops = 0, rejects = 0;  // rules of it that do so
};
template <typename V>
void fields(V& v, FirewallChain& f) {
  v("tool", f.tool);
  v("table", f.table);
  v("chain", f.chain);
  v("policy", f.policy);
  v("rules", f.rules);
  v("drops", f.drops);
  v("rejects", f.rejects);
}

struct NetworkFacts {
  std::vector<Interface> interfaces;  // in the order of getifaddrs
  std::vector<Route> routes;          // to each peer address asked for
  std::vector<Resolved> names;        // own name first, then the peers' names and MASTER_ADDR
  std::vector<SocketChoice> choices;
  int64_t port_range_low = 0, port_range_high = 0;  // ip_local_port_range
  std::string reserved_ports;
  int64_t somaxconn = 0;
  int64_t tcp_syn_retries = 0;
  bool ipv6_disabled = false;
  int64_t rp_filter = -1;                // of "all"
  int64_t uptime_s = 0;                  // since boot: counters count from there
  std::vector<FirewallChain> chains;     // of the packet filter
  std::vector<std::string> firewalls;    // hints: "firewalld active", "ufw enabled", "nft: inet filter input, policy drop, 12 rules"
  std::string hosts_file_loopback_name;  // own name on a 127.* line of /etc/hosts: that line
};
template <typename V>
void fields(V& v, NetworkFacts& f) {
  v("interfaces", f.interfaces);
  v("routes", f.routes);
  v("names", f.names);
  v("choices", f.choices);
  v("port_range_low", f.port_range_low);
  v("port_range_high", f.port_range_high);
  v("reserved_ports", f.reserved_ports);
  v("somaxconn", f.somaxconn);
  v("tcp_syn_retries", f.tcp_syn_retries);
  v("ipv6_disabled", f.ipv6_disabled);
  v("rp_filter", f.rp_filter);
  v("uptime_s", f.uptime_s);
  v("chains", f.chains);
  v("firewalls", f.firewalls);
  v("hosts_file_loopback_name", f.hosts_file_loopback_name);
}

}  // namespace phalanx::machine
