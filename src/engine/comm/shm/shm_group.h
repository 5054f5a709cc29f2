// The ranks of one host, over memory they share.
//
//   small       everyone puts its part into its tray and meets the others; then each reads what it needs. One meeting, no more
//   in windows  each sums its share of all ranks' windows and writes it into all of them (all_reduce) or reads only what it needs
//   else        chunk by chunk through the trays, as for small ones; of an all_reduce of more than two each sums its share for all
//
// All ranks take the same way, as it follows from the notes that all of them have read. The work is done at wait(), by the ranks' own
// threads: a thread of its own would take the cores from the computation.
#pragma once

#include <memory>

#include "engine/comm/make_group.h"
#include "engine/comm/network/host_link.h"
#include "engine/comm/shm/barrier.h"

namespace phalanx::engine::comm {

// How the ranks of a host met.
struct SharedHost {
  HostLink link;
  std::unique_ptr<ShmBarrier> board;
};

// Makes the segment and the board. `link` is connected; ranks: of the run, by their place on the host. Every rank of the host calls it, and
// if any fails the others must not use what they got.
base::Result<SharedHost> share_host(HostLink link, int index, std::vector<int> ranks);

// `store` may be without a store in a group that was split off.
std::unique_ptr<Group> make_shm_group(StoreHandle store, SharedHost host, const GroupOptions& options);

}  // namespace phalanx::engine::comm
