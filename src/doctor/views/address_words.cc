#include "doctor/views/address_words.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace phalanx::doctor {
namespace {

std::optional<std::array<uint8_t, 4>> octets(const std::string& address) {
  std::array<uint8_t, 4> bytes{};
  if (::inet_pton(AF_INET, address.c_str(), bytes.data()) != 1) return std::nullopt;
  return bytes;
}

}  // namespace

std::vector<KnownAddress> known_addresses(const Situation& s) {
  std::vector<KnownAddress> known;
  for (const HostView& h : s.hosts) {
    for (const machine::Interface& i : h.facts.network.interfaces)
      for (const machine::InterfaceAddressFact& a : i.addresses)
        if (!i.loopback && !is_loopback(a.address)) known.push_back({a.address, fmt::format("{} ({})", h.name, i.name)});
    for (const machine::NetworkMount& m : h.facts.storage.network_mounts)
      if (m.mounted && is_numeric(m.server)) known.push_back({m.server, fmt::format("{}:{}", m.server, m.export_path)});
  }
  return known;
}

bool has_address(const HostView& host, const std::string& address) {
  for (const machine::Interface& i : host.facts.network.interfaces)
    for (const machine::InterfaceAddressFact& a : i.addresses)
      if (a.address == address) return true;
  return false;
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address == "localhost.localdomain" ||
         (address.rfind("127.", 0) == 0 && is_numeric(address));
}

bool is_numeric(const std::string& address) {
  uint8_t bytes[16];
  return ::inet_pton(AF_INET, address.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, address.c_str(), bytes) == 1;
}

std::optional<KnownAddress> probably_meant(const std::string& address, const std::vector<KnownAddress>& known) {
  std::optional<std::array<uint8_t, 4>> written = octets(address);
  if (!written) return std::nullopt;
  const KnownAddress* meant = nullptr;
  for (const KnownAddress& k : known) {
    std::optional<std::array<uint8_t, 4>> real = octets(k.address);
    if (!real) continue;
    if (std::equal(real->begin(), real->begin() + 3, written->begin())) return std::nullopt;  // a neighbour
    int differ = 0;
    for (size_t i = 0; i < 4; ++i) differ += (*real)[i] != (*written)[i];
    if (differ == 1 && (*real)[3] == (*written)[3] && !meant) meant = &k;
  }
  return meant ? std::optional(*meant) : std::nullopt;
}

}  // namespace phalanx::doctor
