#include "engine/comm/group.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <memory>
#include <numeric>
#include <set>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/comm/flight.h"
#include "engine/comm/make_group.h"
#include "engine/comm/network/route.h"
#include "engine/comm/slow_notice.h"
#include "os/net.h"

namespace phalanx::engine::comm {
namespace {

constexpr std::chrono::minutes kJoinTimeout{5};

StoreHandle open_store(const RankEnv& env, bool hosting) {
  c10d::TCPStoreOptions options = compat::tcp_store_options();
  options.port = env.master_port;
  options.isServer = hosting;
  options.numWorkers = env.world;
  options.timeout = kJoinTimeout;
  c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::TCPStore>(env.master_addr, options);
  if (env.agent_store) store = c10::make_intrusive<c10d::PrefixStore>(fmt::format("/worker/attempt_{}", env.attempt), store);
  return {c10::make_intrusive<c10d::PrefixStore>("phalanx-train", store), hosting};
}

base::Status check_interfaces(const std::string& names) {
  if (names.empty()) return base::ok();
  TRY_ASSIGN(auto addresses, os::interface_addresses());
  std::set<std::string> known;
  for (const auto& one : addresses) known.insert(one.interface);
  for (std::string_view name : base::split(names, ',')) {
    if (name.empty() || known.count(std::string(name))) continue;
    std::vector<std::string> list(known.begin(), known.end());
    return base::fail(base::ErrorKind::kConfig,
                      fmt::format("GLOO_SOCKET_IFNAME names {}, which this host does not have", base::quote(name)))
        .because(fmt::format("its interfaces with an address are {}", base::join(list, ", ")));
  }
  return base::ok();
}

// Where the other ranks find this one: the address by which its host and the store's reach each other. "" if unknown.
std::string own_address(const RankEnv& env) {
  std::string address = address_towards(env.master_addr, env.master_port);
  const bool loopback = address.starts_with("127.") || address == "::1";
  if (!loopback || env.world == env.local_world) return address;
  // Several hosts, and here MASTER_ADDR means this host by a name that /etc/hosts maps to 127.0.1.1, as Debian's does.
  auto addresses = os::interface_addresses();
  if (!addresses.ok()) return address;
  for (const os::InterfaceAddress& one : *addresses)
    if (one.up && !one.loopback && one.address.find("fe80:") != 0) return one.address;
  return address;
}

// With a buffer of its own: without one, glibc goes on filling the old buffer where something was printed before.
void print_whole_lines() {
  static std::array<char, 4096> buffer;
  std::setvbuf(stdout, buffer.data(), _IOLBF, buffer.size());
}

// The ring and, where it can be asked for its dump, the one who listens; both live as long as any group.
struct Flight {
  explicit Flight(std::string file) : ring(std::move(file)) {}
  FlightRing ring;
  std::unique_ptr<FlightPipe> pipe;
};

base::Result<std::shared_ptr<FlightRing>> open_flight(const RankEnv& env) {
  const FlightFiles files = flight_files(process_environment, env.rank);
  auto flight = std::make_shared<Flight>(files.dump);
  std::vector<int> all(static_cast<size_t>(env.world));
  std::iota(all.begin(), all.end(), 0);
  flight->ring.add_group("world", all);
  if (!files.pipe.empty()) { TRY_ASSIGN(flight->pipe, FlightPipe::listen(flight->ring, files.pipe)); }
  return std::shared_ptr<FlightRing>(flight, &flight->ring);
}

}  // namespace

base::Result<std::unique_ptr<Group>> join(const RankEnv& env, at::Device device) {
  print_whole_lines();
  if (env.world == 1) return make_single_rank(device);
  TRY(check_interfaces(env.gloo_interfaces));
  std::string doing = fmt::format("rendezvous of rank {} of {} at {}:{}", env.rank, env.world, env.master_addr, env.master_port);
  const bool hosting = env.rank == 0 && !env.agent_store;
  const std::string address = own_address(env);
  if (hosting && address.empty())
    return base::fail(base::ErrorKind::kUnreachable, fmt::format("cannot resolve MASTER_ADDR {}", base::quote(env.master_addr)))
        .because("rank 0 provides the store on this address, so it must be a name or address of this host");
  SlowNotice patience(
      fmt::format("rank {} of {} is waiting for the other ranks at {}:{}", env.rank, env.world, env.master_addr, env.master_port));
  StoreHandle store;
  try {
    store = open_store(env, hosting);
  } catch (const std::exception& failure) {
    return base::fail(base::ErrorKind::kUnreachable, fmt::format("rank {} cannot reach the store", env.rank))
        .within(doing)
        .because(reason(failure))
        .with_hint(hosting ? "choose a free MASTER_PORT, and a MASTER_ADDR that is this host's own"
                           : "check MASTER_ADDR, MASTER_PORT and firewalls, and that rank 0 or its launcher is running");
  }
  try {
    const Place place{env.rank, env.world, device, address, env.gloo_interfaces};
    GroupOptions options;
    options.timeout = std::chrono::seconds{env.comm_timeout_s};
    options.shared_memory = env.comm_shared_memory;
    options.check = env.comm_check;
    TRY_ASSIGN(options.flight, open_flight(env));
    return make_group(std::move(store), place, options);
  } catch (const std::exception& failure) {
    return base::fail(base::ErrorKind::kUnreachable, fmt::format("rank {} cannot connect to the other ranks", env.rank))
        .within(doing)
        .because(reason(failure));
  }
}

}  // namespace phalanx::engine::comm
