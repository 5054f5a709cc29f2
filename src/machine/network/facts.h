// Interfaces, routes, names and TCP settings of one machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"

namespace phalanx::machine {

struct InterfaceAddressFact {
  std::string address;  // numeric
  int64_t prefix = 0;
  bool v6 = false;
  std::string label{};  // where it is not the interface's name: "eth0:1", which is the name getifaddrs gives
};
PHALANX_FIELDS(InterfaceAddressFact, address, prefix, v6, label);

struct BondSlave {
  std::string name;
  bool up = false;
  int64_t speed_mbps = 0;
};
PHALANX_FIELDS(BondSlave, name, up, speed_mbps);

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
PHALANX_FIELDS(Interface, name, kind, state, up, running, loopback, carrier, carrier_changes, mtu, speed_mbps, rx_errors, rx_dropped,
               tx_errors, rx_packets, tx_packets, mac, driver, pci, numa_node, master, slaves, addresses);

// The kernel's answer to "how would you send to this address".
struct Route {
  std::string to;
  std::string interface;
  std::string source;   // the address it would send from
  std::string gateway;  // empty: on the link
  int64_t mtu = 0;
  std::string error;  // "Network is unreachable"
};
PHALANX_FIELDS(Route, to, interface, source, gateway, mtu, error);

struct Resolved {
  std::string name;
  std::vector<std::string> addresses;
  std::string error;  // "Name or service not known"
  int64_t took_ns = 0;
};
PHALANX_FIELDS(Resolved, name, addresses, error, took_ns);

// What a library would choose here, by a replay of its rules (nccl_interface.h).
struct SocketChoice {
  std::string library;    // "nccl", "gloo", "c10d"
  std::string interface;  // empty: it would fail
  std::string address;
  std::string why;  // "NCCL_SOCKET_IFNAME=eth0 matches eth0", "first that is not docker or lo"
};
PHALANX_FIELDS(SocketChoice, library, interface, address, why);

// A chain of the packet filter that sees what comes in (hook input), as far as we may read it (root).
struct FirewallChain {
  std::string tool;    // "nft", "iptables"
  std::string table;   // "inet filter"; "filter" of iptables
  std::string chain;   // "input"
  std::string policy;  // "accept", "drop"
  int64_t rules = 0;
  int64_t drops = 0, rejects = 0;  // rules of it that do so
};
PHALANX_FIELDS(FirewallChain, tool, table, chain, policy, rules, drops, rejects);

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
PHALANX_FIELDS(NetworkFacts, interfaces, routes, names, choices, port_range_low, port_range_high, reserved_ports, somaxconn,
               tcp_syn_retries, ipv6_disabled, rp_filter, uptime_s, chains, firewalls, hosts_file_loopback_name);

}  // namespace phalanx::machine
