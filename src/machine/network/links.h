// The interfaces of a machine: of this one by netlink (right in every network namespace, also where /sys shows another's), of a
// recorded or built tree from its /sys/class/net and its file /ip-address, the output of `ip -o address`.
#pragma once

#include <string>
#include <vector>

#include "machine/network/facts.h"
#include "machine/network/text.h"

namespace phalanx::machine {

// What the kernel says of one link, whichever way it was read.
struct Link {
  int64_t index = 0;
  Interface facts;        // all but kind, slaves and addresses
  int64_t hardware = 0;   // ARPHRD_*: 1 Ethernet, 32 InfiniBand, 772 loopback
  std::string link_kind;  // IFLA_INFO_KIND or DEVTYPE: "veth", "bridge", "bond", "vlan", "wireguard"
};
std::string kind_of(const Link& link);

std::vector<Link> kernel_links();                       // by index
std::vector<Link> tree_links(const std::string& root);  // by index
std::vector<Interface> read_interfaces(const std::string& root);
// The interfaces of `addresses`, each once, so that walking them for IPv4 and then for IPv6 gives the addresses in their order
// again: the kernel lists both families by the same order of devices, but not every device has both.
std::vector<std::string> interface_order(const std::vector<AddressLine>& addresses);

// The kernel's answers (RTM_GETROUTE), one per address, in their order. Only of this machine.
std::vector<Route> read_routes(const std::vector<std::string>& addresses);

}  // namespace phalanx::machine
