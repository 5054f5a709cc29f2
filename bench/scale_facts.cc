#include "scale_facts.h"

#include <fmt/format.h>

#include "base/json_fields.h"
#include "os/clock.h"
#include "situations.h"

namespace phalanx::scale {
namespace {

constexpr int kAdapters = 4;
constexpr int64_t kResolved_ns = 300'000;

// Network 1 is bond0's, 2 to 5 the adapters': /16 each.
std::string address(int network, int host) { return fmt::format("10.{}.{}.{}", network, host / 250, host % 250 + 1); }

const machine::Facts& model() {
  static const machine::Facts facts = doctor::test::bond_infiniband().hosts.front().facts;
  return facts;
}

void make_own(machine::Facts& facts, int host) {
  machine::Machine& m = facts.machine;
  m.hostname = host_name(host);
  m.boot_id = fmt::format("b0070000-0000-4000-8000-{:012}", host + 1);
  m.machine_id = fmt::format("{:032}", host + 1);
  std::vector<wire::Address> addresses = addresses_of(host);
  for (machine::Interface& interface : facts.network.interfaces)
    for (const wire::Address& own : addresses)
      if (interface.name == own.interface) interface.addresses = {{own.address, 16, false, ""}};
  for (size_t p = 0; p < facts.infiniband.devices.size(); ++p) {
    machine::IbPort& port = facts.infiniband.devices[p].ports.front();
    port.lid = 1 + host * kAdapters + static_cast<int64_t>(p);
    port.gids = {{0, fmt::format("fe80:0000:0000:0000:b859:9f{:02x}:{:04x}:{:04x}", p, host, p), "IB/RoCE v1", fmt::format("ib{}", p)}};
  }
  for (machine::Gpu& gpu : facts.gpus.devices) gpu.uuid = fmt::format("GPU-{:08x}-{:04x}-4000-8000-000000000000", gpu.index, host);
}

}  // namespace

std::string host_name(int host) { return fmt::format("h{:04}", host + 1); }

std::vector<wire::Address> addresses_of(int host) {
  std::vector<wire::Address> list{{"bond0", address(1, host)}};
  for (int p = 0; p < kAdapters; ++p) list.push_back({fmt::format("ib{}", p), address(2 + p, host)});
  return list;
}

std::string facts_of(int host, const wire::Probe& probe) {
  machine::Facts facts = model();
  make_own(facts, host);
  std::vector<wire::Address> own = addresses_of(host);
  machine::NetworkFacts& network = facts.network;
  network.names = {{host_name(host), {own[0].address}, "", kResolved_ns}};
  network.routes.clear();
  for (const wire::ProbePeer& peer : probe.peers) {
    network.names.push_back({peer.name, {peer.addresses.empty() ? "" : peer.addresses.front()}, "", kResolved_ns});
    for (size_t i = 0; i < peer.addresses.size() && i < own.size(); ++i)
      network.routes.push_back({peer.addresses[i], own[i].interface, own[i].address, "", i == 0 ? 9000 : 4092, ""});
  }
  network.choices = {{"nccl", own[1].interface, own[1].address, "first ib*"},
                     {"gloo", own[0].interface, own[0].address, "own name"},
                     {"c10d", own[0].interface, own[0].address, "own name"}};
  facts.clock.wall_ns = os::wall_now_ns();
  facts.clock.mono_ns = os::mono_now().ns;
  return base::to_text(base::to_json(facts));
}

}  // namespace phalanx::scale
