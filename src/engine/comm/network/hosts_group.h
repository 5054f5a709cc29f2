// The ranks of several hosts, equally many on each and numbered host by host: shared memory inside a host, Gloo between hosts.
//
// Rank j of each host and rank j of the others form a column, a Gloo group of its own. A reduce-scatter sums inside each host, piece by
// piece, so that rank j holds its host's sums of the pieces of column j; the columns sum those, in the order of the hosts. An all-gather
// goes the other way. So each byte crosses between two hosts once, spread over all ranks, and sums are
//   (sum of the first host's ranks, in their order) + (sum of the second host's ranks) + …
// in fp32 for 16-bit floats until the end, the same for every operation. What is small goes between the hosts' first ranks alone.
#pragma once

#include <memory>

#include "engine/comm/make_group.h"
#include "engine/comm/shm/shm_group.h"

namespace phalanx::engine::comm {

// local_ranks: on each host. Throws when the columns cannot connect.
std::unique_ptr<Group> make_hosts_group(StoreHandle store, SharedHost host, int local_ranks, const Place& place,
                                        const GroupOptions& options);

}  // namespace phalanx::engine::comm
