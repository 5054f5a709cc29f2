// Which address a library would take of a machine with many, by a replay of its own rules.
//
// NCCL (src/misc/socket.cc, from 2.29 also src/os/linux.cc; read at the tags 2.10.3 to 2.30.7). It walks getifaddrs(), takes IPv4 and
// IPv6 but not ::1, only NCCL_SOCKET_FAMILY where that is set, and of each name the first address. No test of reachability.
//   NCCL_SOCKET_IFNAME (two characters or more): a list of prefixes; "=" first: whole names; "^" first: all but these; "^=" both.
//   Unset: names that begin with "ib"; else, with NCCL_COMM_ID, the one interface in its subnet; else all but docker* and lo*;
//   else docker*; else lo*.
//   From 2.28: interfaces without IFF_RUNNING are skipped; virbr* is passed over with docker* and lo*, and comes last of all.
//   The bootstrap takes the first; with NCCL_COMM_ID it takes the one in its subnet, whatever NCCL_SOCKET_IFNAME says. NET/Socket
//   takes up to 16.
// Gloo as torch uses it (ProcessGroupGloo.cpp, gloo/transport/tcp/device.cc): GLOO_SOCKET_IFNAME is a list of whole names, of
//   each the first address; unset: the first address of the own name that can be bound, else 127.0.0.1.
// c10d, i.e. torchrun's dynamic rendezvous: rank 0's host tells the others its own name; TensorPipe: TP_SOCKET_IFNAME, one whole name,
//   else the own name.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "machine/network/facts.h"

namespace phalanx::machine {

// One entry of getifaddrs() with an IP address.
struct ListedAddress {
  std::string name;       // as getifaddrs says it: the label of an alias, else the interface
  std::string interface;  // the interface itself
  std::string address;
  int64_t prefix = 0;
  bool v6 = false;
  bool running = false;
  bool operator==(const ListedAddress&) const = default;
};
// In getifaddrs' order: all IPv4 of all interfaces, then all IPv6.
std::vector<ListedAddress> listed_addresses(const std::vector<Interface>& interfaces);

struct NcclSettings {
  std::string ifname;   // NCCL_SOCKET_IFNAME
  std::string family;   // NCCL_SOCKET_FAMILY
  std::string comm_id;  // NCCL_COMM_ID's host as a numeric address; empty: not set (or a name nobody resolved)
  int version = 0;      // 22005 for 2.20.5; 0: unknown, taken as the newest
};
NcclSettings nccl_settings(const std::map<std::string, std::string>& environment, int version);
int nccl_version(std::string_view text);  // "2.20.5+cuda12.4" → 22005; 0: none

struct NcclFound {
  std::vector<ListedAddress> interfaces;
  std::string rule;  // in words
};
NcclFound nccl_interfaces(const std::vector<ListedAddress>& listed, const NcclSettings& settings, size_t most = 16);
NcclFound nccl_bootstrap(const std::vector<ListedAddress>& listed, const NcclSettings& settings);
// Would this NCCL_SOCKET_IFNAME (or NCCL_IB_HCA) list take this name? port: of an HCA, -1: any.
bool nccl_list_takes(std::string_view list, std::string_view name, int port = -1);

// own: what the own name resolves to, in the resolver's order.
SocketChoice nccl_choice(const std::vector<Interface>& interfaces, const NcclSettings& settings);
SocketChoice gloo_choice(const std::vector<Interface>& interfaces, const std::string& ifname, const std::vector<std::string>& own);
SocketChoice own_name_choice(const std::vector<Interface>& interfaces, const std::string& library, const std::vector<std::string>& own);

// All of them, from facts.interfaces and facts.names (its first is the own name).
std::vector<SocketChoice> socket_choices(const NetworkFacts& facts, const std::map<std::string, std::string>& environment,
                                         int nccl_version);

}  // namespace phalanx::machine
