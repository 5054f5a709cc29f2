// Addresses as people write them: which exist in this cluster, and which one was probably meant.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/situation.h"

namespace phalanx::doctor {

struct KnownAddress {
  std::string address;
  std::string owner;  // "gpu01's address on eno1", "the server of /home on gpu01"
};
// Of all interfaces, and of file servers that are mounted.
std::vector<KnownAddress> known_addresses(const Situation& s);
bool has_address(const HostView& host, const std::string& address);
bool is_loopback(const std::string& address);  // 127.*, ::1, "localhost"
bool is_numeric(const std::string& address);   // IPv4 or IPv6

// The known IPv4 address that differs from `address` in exactly one of its first three octets. Nothing if the address itself is
// known, or if it lies in a network that somebody has.
std::optional<KnownAddress> probably_meant(const std::string& address, const std::vector<KnownAddress>& known);

}  // namespace phalanx::doctor
