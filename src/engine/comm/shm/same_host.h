// Which ranks of a run are on one host, as far as memory is concerned, and how they meet there.
#pragma once

#include <string>
#include <vector>

#include "engine/comm/shm/shm_group.h"

namespace phalanx::engine::comm {

// Equal for two processes exactly if they can share memory by our means: one running kernel, one network namespace (abstract sockets live
// in it) and one user.
std::string host_identity();

// Every rank's text, through the store. Collective.
std::vector<std::string> exchange_by_store(c10d::Store& store, std::string_view name, const std::string& text, int rank, int world,
                                           std::chrono::milliseconds timeout);

// Meets the other ranks of this host, which are `members` of the run, in their order, this one among them. All of them get the same: either
// memory, or why there is none. Collective among them.
struct Met {
  std::optional<SharedHost> host;
  std::string why_not;
};
Met meet_on_host(c10d::Store& store, const std::vector<int>& members, int rank, std::chrono::milliseconds timeout);

}  // namespace phalanx::engine::comm
