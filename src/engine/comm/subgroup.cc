#include "engine/comm/subgroup.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/comm/flight.h"

namespace phalanx::engine::comm {

Subgroup part_of(Group& group, int color, int key) {
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
  Subgroup part;
  for (const auto& [order, r] : members) {
    if (r == group.rank()) part.rank = static_cast<int>(part.members.size());
    part.members.push_back(r);
  }
  return part;
}

GroupOptions options_of(const Subgroup& part, const GroupOptions& whole, int split, int color) {
  GroupOptions options = whole;
  options.name = fmt::format("{}/{}.{}", whole.name, split, color);
  options.ranks.clear();
  for (int member : part.members) options.ranks.push_back(whole.ranks.empty() ? member : whole.ranks[static_cast<size_t>(member)]);
  if (options.flight) options.flight->add_group(options.name, options.ranks);
  return options;
}

std::unique_ptr<Group> split_by_store(Group& whole, const StoreHandle& store, const Place& place, const GroupOptions& options, int split,
                                      int color, int key) {
  const Subgroup part = part_of(whole, color, key);
  Place in_part = place;
  in_part.rank = part.rank;
  in_part.world = static_cast<int>(part.members.size());
  const std::string prefix = fmt::format("split/{}/{}", split, color);
  return make_group({c10::make_intrusive<c10d::PrefixStore>(prefix, store.store), false, true}, in_part,
                    options_of(part, options, split, color));
}

}  // namespace phalanx::engine::comm
