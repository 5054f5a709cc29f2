#include "engine/comm/part.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

namespace engine::comm {

Part part_of(Group& group, int color, int key) {
  at::Tensor told = at::zeros({group.world(), 2}, at::TensorOptions().dtype(at::kLong));
  int64_t* own = told.data_ptr<int64_t>() + static_cast<ptrdiff_t>(2) * group.rank();
  own[0] = color;
  own[1] = key;
  at::Tensor shared = told.to(group.device());
  group.all_gather(shared, shared.select(0, group.rank()), "split");
  told = shared.to(at::kCPU);
  const int64_t* all = told.data_ptr<int64_t>();
  std::vector<std::pair<int64_t, int>> members;
  for (int r = 0; r < group.world(); ++r)
    if (all[2 * r] == color) members.emplace_back(all[2 * r + 1], r);
  std::sort(members.begin(), members.end());
  Part part;
  for (const auto& [order, r] : members) {
    if (r == group.rank()) part.rank = static_cast<int>(part.members.size());
    part.members.push_back(r);
  }
  return part;
}

}  // namespace engine::comm
