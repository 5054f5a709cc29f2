#include "engine/comm/make_group.h"

#include <algorithm>

#include "engine/comm/gloo_group.h"
#include "engine/comm/nccl_group.h"
#include "engine/comm/same_host.h"

namespace engine::comm {
namespace {

constexpr std::chrono::minutes kJoinTimeout{5};

}  // namespace

std::unique_ptr<Group> make_group(StoreHandle store, const Place& place, const GroupOptions& options) {
  if (place.world == 1) return make_alone(place.device);
  if (place.device.is_cuda()) return make_nccl_group(std::move(store), place, options);
  const std::string identity = options.shared_memory ? host_identity() : "-";
  const std::vector<std::string> hosts = exchange_by_store(*store.store, "hosts", identity, place.rank, place.world, kJoinTimeout);
  GroupOptions gloo = options;
  if (std::count(hosts.begin(), hosts.end(), "-") > 0) {
    gloo.instead_of = "shared memory is switched off";
  } else if (std::count(hosts.begin(), hosts.end(), hosts.front()) == place.world) {
    std::vector<int> all;
    for (int r = 0; r < place.world; ++r) all.push_back(r);
    Met met = meet_on_host(*store.store, all, place.rank, kJoinTimeout);
    if (met.host) return make_shm_group(std::move(store), std::move(*met.host), options);
    gloo.instead_of = "no shared memory: " + met.why_not;
  }
  return make_gloo_group(std::move(store), place, gloo);
}

}  // namespace engine::comm
