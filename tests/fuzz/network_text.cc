// Any bytes as the texts that tell of a network: bonds, hosts files, recorded addresses, packet filters, small files of sysfs. What comes
// out is bounded and well-formed: addresses are addresses, prefixes fit, counts are not negative.
#include "machine/network/text.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "machine/infiniband/text.h"
#include "machine/network/nccl_interface.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string first(text.substr(0, text.find('\n')));

  std::vector<machine::BondSlave> slaves = machine::parse_bonding(text);
  PHALANX_CHECK(slaves.size() <= 64);
  for (const machine::BondSlave& s : slaves) PHALANX_CHECK(s.name.size() <= 64 && s.speed_mbps >= 0);

  PHALANX_CHECK(machine::hosts_file_loopback(text, "gpu01").size() <= 256);
  for (const std::string& address : machine::hosts_file_addresses(text, "gpu01")) PHALANX_CHECK(machine::is_address(address));

  std::vector<machine::Interface> interfaces;
  for (const machine::AddressLine& line : machine::parse_ip_addresses(text)) {
    PHALANX_CHECK(machine::is_address(line.address.address) && line.interface.size() <= 64);
    PHALANX_CHECK(line.address.prefix >= 0 && line.address.prefix <= (line.address.v6 ? 128 : 32));
    PHALANX_CHECK(!machine::network_of(line.address.address, line.address.prefix).empty());
    interfaces.push_back({});
    interfaces.back().name = line.interface;
    interfaces.back().running = true;
    interfaces.back().addresses = {line.address};
  }
  machine::NcclSettings settings;
  settings.ifname = first;
  std::vector<machine::ListedAddress> listed = machine::listed_addresses(interfaces);
  PHALANX_CHECK(listed.size() == interfaces.size());
  PHALANX_CHECK(machine::nccl_interfaces(listed, settings).interfaces.size() <= 16);
  PHALANX_CHECK(
      machine::nccl_bootstrap(listed, machine::nccl_settings({{"NCCL_COMM_ID", first}}, machine::nccl_version(first))).interfaces.size() <=
      1);
  machine::gloo_choice(interfaces, first, {first});
  machine::nccl_list_takes(first, "mlx5_0", 1);

  for (const auto& chains : {machine::parse_nft(text), machine::parse_iptables(text)}) {
    PHALANX_CHECK(chains.size() <= 64);
    for (const machine::FirewallChain& c : chains) PHALANX_CHECK(c.rules >= 0 && c.drops <= c.rules && c.rejects <= c.rules);
  }
  PHALANX_CHECK(machine::rate_gbps(text) >= 0);
  PHALANX_CHECK(machine::hexadecimal(text) >= 0);
  PHALANX_CHECK(machine::after_colon(text).size() <= text.size());
  if (machine::is_gid(text)) PHALANX_CHECK(text.size() == 39);
  return 0;
}
