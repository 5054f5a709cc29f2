// Any bytes as the texts that tell of a network: bonds, hosts files, recorded addresses, packet filters, small files of sysfs. What comes
// out is bounded and well-formed: addresses are addresses, prefixes fit, counts are not negative.
#include "host/network_text.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "host/infiniband_text.h"
#include "host/nccl_interface.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string first(text.substr(0, text.find('\n')));

  std::vector<host::BondSlave> slaves = host::parse_bonding(text);
  CHECK(slaves.size() <= 64);
  for (const host::BondSlave& s : slaves) CHECK(s.name.size() <= 64 && s.speed_mbps >= 0);

  CHECK(host::hosts_file_loopback(text, "gpu01").size() <= 256);
  for (const std::string& address : host::hosts_file_addresses(text, "gpu01")) CHECK(host::is_address(address));

  std::vector<host::Interface> interfaces;
  for (const host::AddressLine& line : host::parse_ip_addresses(text)) {
    CHECK(host::is_address(line.address.address) && line.interface.size() <= 64);
    CHECK(line.address.prefix >= 0 && line.address.prefix <= (line.address.v6 ? 128 : 32));
    CHECK(!host::network_of(line.address.address, line.address.prefix).empty());
    interfaces.push_back({});
    interfaces.back().name = line.interface;
    interfaces.back().running = true;
    interfaces.back().addresses = {line.address};
  }
  host::NcclSettings settings;
  settings.ifname = first;
  std::vector<host::ListedAddress> listed = host::listed_addresses(interfaces);
  CHECK(listed.size() == interfaces.size());
  CHECK(host::nccl_interfaces(listed, settings).interfaces.size() <= 16);
  CHECK(host::nccl_bootstrap(listed, host::nccl_settings({{"NCCL_COMM_ID", first}}, host::nccl_version(first))).interfaces.size() <= 1);
  host::gloo_choice(interfaces, first, {first});
  host::nccl_list_takes(first, "mlx5_0", 1);

  for (const auto& chains : {host::parse_nft(text), host::parse_iptables(text)}) {
    CHECK(chains.size() <= 64);
    for (const host::FirewallChain& c : chains) CHECK(c.rules >= 0 && c.drops <= c.rules && c.rejects <= c.rules);
  }
  CHECK(host::rate_gbps(text) >= 0);
  CHECK(host::hexadecimal(text) >= 0);
  CHECK(host::after_colon(text).size() <= text.size());
  if (host::is_gid(text)) CHECK(text.size() == 39);
  return 0;
}
