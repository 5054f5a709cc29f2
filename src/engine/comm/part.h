// Which ranks of a group form which smaller one.
#pragma once

#include <vector>

#include "engine/comm/make_group.h"

namespace engine::comm {

struct Part {
  std::vector<int> members;  // ranks of the whole group, in the order of their ranks in the part
  int rank = 0;              // of this one, in the part
};

// The ranks that give the same color, ordered by (key, rank). Collective.
Part part_of(Group& group, int color, int key);

// Those of the part's group, from those of the whole: its name and ranks, and it is known to the flight ring. `split` counts the whole's.
GroupOptions options_of(const Part& part, const GroupOptions& whole, int split, int color);

}  // namespace engine::comm
