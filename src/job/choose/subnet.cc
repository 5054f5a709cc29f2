#include "job/choose/subnet.h"

#include <arpa/inet.h>

#include <algorithm>

namespace phalanx::job {
namespace {

int64_t within(const NumericAddress& address, int64_t prefix) { return prefix < 0 || prefix > address.bits() ? address.bits() : prefix; }

}  // namespace

bool NumericAddress::loopback() const {
  if (!v6) return bytes[0] == 127;
  return bytes[15] == 1 && std::all_of(bytes.begin(), bytes.end() - 1, [](uint8_t b) { return b == 0; });
}

bool NumericAddress::link_local() const { return v6 ? bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80 : bytes[0] == 169 && bytes[1] == 254; }

std::optional<NumericAddress> parse_address(const std::string& text) {
  NumericAddress a;
  a.v6 = text.find(':') != std::string::npos;
  if (::inet_pton(a.v6 ? AF_INET6 : AF_INET, text.c_str(), a.bytes.data()) != 1) return std::nullopt;
  return a;
}

bool same_network(const NumericAddress& a, const NumericAddress& b, int64_t prefix) {
  if (a.v6 != b.v6) return false;
  int64_t left = within(a, prefix);
  for (size_t i = 0; left > 0; ++i, left -= 8) {
    unsigned mask = left >= 8 ? 0xffU : (0xff00U >> left) & 0xffU;
    if ((a.bytes[i] & mask) != (b.bytes[i] & mask)) return false;
  }
  return true;
}

std::string network_name(const NumericAddress& address, int64_t prefix) {
  NumericAddress network = address;
  int64_t bits = within(address, prefix);
  for (int64_t bit = bits; bit < address.bits(); ++bit)
    network.bytes[static_cast<size_t>(bit / 8)] &= static_cast<uint8_t>(~(0x80U >> (bit % 8)));
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(address.v6 ? AF_INET6 : AF_INET, network.bytes.data(), text, sizeof(text));
  return std::string(text) + "/" + std::to_string(bits);
}

}  // namespace phalanx::job
