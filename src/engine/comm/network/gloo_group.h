// The ranks of a run over Gloo, of which only what works in every libtorch for every type is used: messages of bytes between two ranks.
// Sums are made here, in the order of the ranks (group.h). Gloo's own all-reduce has another order for each
// place in the tensor, no reduce-scatter before libtorch 2.6, and types that come and go with versions and builds.
//
//   reduce_scatter   every rank sends each other rank its piece and sums what it gets: half the bytes of an all-reduce
//   all_gather       every rank sends its piece to each other rank, straight into its place
//   all_reduce       small: everyone sends everything, and sums; else the two above, chunk by chunk
//   broadcast        down a binomial tree, chunk by chunk
//
// Messages are told apart by the operation's number.
#pragma once

#include <memory>

#include "engine/comm/make_group.h"

namespace phalanx::engine::comm {

// Throws when the ranks cannot connect, and where the build has no Gloo.
std::unique_ptr<Group> make_gloo_group(StoreHandle store, const Place& place, const GroupOptions& options);

}  // namespace phalanx::engine::comm
