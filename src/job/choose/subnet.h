// Numeric addresses and the networks they are in, as far as choosing between them needs it. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace phalanx::job {

struct NumericAddress {
  std::array<uint8_t, 16> bytes{};  // the first 4 of IPv4
  bool v6 = false;

  int bits() const { return v6 ? 128 : 32; }
  bool loopback() const;    // 127/8, ::1
  bool link_local() const;  // 169.254/16, fe80::/10
};

// No zone, no brackets; none for anything else.
std::optional<NumericAddress> parse_address(const std::string& text);

// The first `prefix` bits agree. A prefix out of range is the whole address.
bool same_network(const NumericAddress& a, const NumericAddress& b, int64_t prefix);

// "192.168.20.0/24"
std::string network_name(const NumericAddress& address, int64_t prefix);

}  // namespace phalanx::job
