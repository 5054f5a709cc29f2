#include "engine/comm/make_group.h"

#include "engine/comm/gloo_group.h"
#include "engine/comm/nccl_group.h"

namespace engine::comm {

std::unique_ptr<Group> make_group(StoreHandle store, const Place& place, const GroupOptions& options) {
  if (place.world == 1) return make_alone(place.device);
  if (place.device.is_cuda()) return make_nccl_group(std::move(store), place, options);
  return make_gloo_group(std::move(store), place, options);
}

}  // namespace engine::comm
