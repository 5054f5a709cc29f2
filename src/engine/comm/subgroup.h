// Which ranks of a group form which smaller one.
#pragma once

#include <vector>

#include "engine/comm/make_group.h"

namespace phalanx::engine::comm {

struct Subgroup {
  std::vector<int> members;  // ranks of the whole group, in the order of their ranks in the part
  int rank = 0;              // of this one, in the part
};

// The ranks that give the same color, ordered by (key, rank). Collective.
Subgroup part_of(Group& group, int color, int key);

// Those of the part's group, from those of the whole: its name and ranks, and it is known to the flight ring. `split` counts the whole's.
GroupOptions options_of(const Subgroup& part, const GroupOptions& whole, int split, int color);

// A group of its own for the part, whose ranks meet in the store of the whole group. Collective over that.
std::unique_ptr<Group> split_by_store(Group& whole, const StoreHandle& store, const Place& place, const GroupOptions& options, int split,
                                      int color, int key);

}  // namespace phalanx::engine::comm
