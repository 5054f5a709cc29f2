// Texts that tell of a network: /proc/net/bonding/*, /etc/hosts, `ip -o address`, `nft list ruleset`, `iptables -S INPUT`.
// Pure functions: text in, facts out; whatever cannot be read is left out. Every result is bounded.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "machine/network/facts.h"

namespace phalanx::machine {

// The slaves of a bond with their state ("MII Status: up") and speed ("Speed: 10000 Mbps"). At most 64.
std::vector<BondSlave> parse_bonding(std::string_view text);

// The line of /etc/hosts that puts `hostname` (or its first label) on a loopback address, its blanks made single; empty: none does.
std::string hosts_file_loopback(std::string_view text, std::string_view hostname);
// Addresses /etc/hosts has for `name`, in its order. At most 64.
std::vector<std::string> hosts_file_addresses(std::string_view text, std::string_view name);

// Lines of `ip -o address`, in their order: interface and address. At most 4096.
struct AddressLine {
  std::string interface;
  InterfaceAddressFact address;
};
std::vector<AddressLine> parse_ip_addresses(std::string_view text);

// The chains of `nft list ruleset` that see incoming packets (hook input), and the INPUT chain of `iptables -S INPUT`. At most 64.
std::vector<FirewallChain> parse_nft(std::string_view text);
std::vector<FirewallChain> parse_iptables(std::string_view text);

// A numeric IPv4 or IPv6 address, without a zone?
bool is_address(const std::string& text);
bool is_loopback_address(const std::string& address);    // 127.0.0.0/8, ::1
bool is_link_local_address(const std::string& address);  // 169.254.0.0/16, fe80::/10
// "192.168.20.0/24" of an address and its prefix; IPv6 alike. Empty for what is no address.
std::string network_of(const std::string& address, int64_t prefix);

}  // namespace phalanx::machine
