// The ranks of a run on GPUs, over NCCL, which chooses the order of sums itself.
#pragma once

#include <memory>

#include "engine/comm/make_group.h"

namespace phalanx::engine::comm {

// Throws when the ranks cannot connect, and where the build has no NCCL.
std::unique_ptr<Group> make_nccl_group(StoreHandle store, const Place& place, const GroupOptions& options);

}  // namespace phalanx::engine::comm
