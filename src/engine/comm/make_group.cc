#include "engine/comm/make_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/text.h"
#include "engine/comm/network/gloo_group.h"
#include "engine/comm/network/hosts_group.h"
#include "engine/comm/network/nccl_group.h"
#include "engine/comm/shm/same_host.h"

namespace phalanx::engine::comm {
namespace {

constexpr std::chrono::minutes kJoinTimeout{5};
constexpr const char *kSwitchedOff = "-", *kOnGpu = "gpu";  // instead of a host's identity

// Each rank has chosen for itself; GPUs and CPUs do not form a group.
void require_one_kind(const std::vector<std::string>& hosts) {
  std::vector<int> on_gpus, on_cpus;
  for (size_t r = 0; r < hosts.size(); ++r) (hosts[r] == kOnGpu ? on_gpus : on_cpus).push_back(static_cast<int>(r));
  if (on_gpus.empty() || on_cpus.empty()) return;
  throw std::runtime_error(fmt::format("ranks {} compute on GPUs, and ranks {} on CPUs: set device: cpu, or use_cpu: true in a recipe",
                                       base::format_ranges(on_gpus), base::format_ranges(on_cpus)));
}

// How many ranks each host has, if they are equally many and numbered host by host; 0: they are not.
int ranks_per_host(const std::vector<std::string>& hosts) {
  const auto world = static_cast<std::ptrdiff_t>(hosts.size());
  const auto each = std::count(hosts.begin(), hosts.end(), hosts.front());
  if (world % each != 0) return 0;
  for (auto first = hosts.begin(); first != hosts.end(); first += each)
    if (std::count(hosts.begin(), hosts.end(), *first) != each || std::count(first, first + each, *first) != each) return 0;
  return static_cast<int>(each);
}

}  // namespace

std::unique_ptr<Group> make_group(StoreHandle store, const Place& place, const GroupOptions& options) {
  if (place.world == 1) return make_single_rank(place.device);
  const std::string identity = place.device.is_cuda()   ? kOnGpu
                               : !options.shared_memory ? kSwitchedOff
                               : place.host.empty()     ? host_identity()
                                                        : place.host;
  const std::vector<std::string> hosts = exchange_by_store(*store.store, "hosts", identity, place.rank, place.world, kJoinTimeout);
  require_one_kind(hosts);
  if (place.device.is_cuda()) return make_nccl_group(std::move(store), place, options);
  GroupOptions gloo = options;
  const int each = ranks_per_host(hosts);
  if (std::count(hosts.begin(), hosts.end(), kSwitchedOff) > 0) {
    gloo.instead_of = "shared memory is disabled";
  } else if (each == 0) {
    gloo.instead_of = "no shared memory: the hosts have different numbers of ranks, or the ranks are not numbered host by host";
  } else if (each > 1) {
    std::vector<int> here;
    for (int r = place.rank / each * each; static_cast<int>(here.size()) < each; ++r) here.push_back(r);
    Met met = meet_on_host(*store.store, here, place.rank, kJoinTimeout);
    if (each == place.world && met.host) return make_shm_group(std::move(store), std::move(*met.host), options);
    // All hosts or none: the ranks have to take the same way.
    const std::vector<std::string> all = exchange_by_store(*store.store, "shared", met.why_not, place.rank, place.world, kJoinTimeout);
    const auto failed = std::find_if(all.begin(), all.end(), [](const std::string& one) { return !one.empty(); });
    if (failed == all.end()) return make_hosts_group(std::move(store), std::move(*met.host), each, place, options);
    gloo.instead_of = fmt::format("no shared memory: {}", *failed);
  }
  return make_gloo_group(std::move(store), place, gloo);
}

}  // namespace phalanx::engine::comm
