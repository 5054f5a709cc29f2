#include "engine/parallel/layout.h"

#include <algorithm>

#include <fmt/format.h>

namespace phalanx::engine::parallel {
namespace {

int64_t rounded_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

class Planner {
 public:
  Planner(const std::vector<ParamShape>& params, int world) : params_(params), world_(world) {}

  void open(std::string name, bool sharded) { units_.push_back({std::move(name), {}, 0, sharded}); }
  void add(size_t param) {
    Unit& unit = units_.back();
    unit.slots.push_back({param, unit.elements, params_[param].numel, params_[param].group});
    unit.elements = rounded_up(unit.elements + params_[param].numel, kAlign);
  }
  bool has_room(size_t param, int64_t limit) const { return !units_.empty() && units_.back().elements + params_[param].numel <= limit; }
  size_t count() const { return units_.size(); }
  std::vector<Unit> finish() {
    for (Unit& unit : units_) unit.elements = rounded_up(unit.elements, kAlign * world_);
    return std::move(units_);
  }

 private:
  const std::vector<ParamShape>& params_;
  int world_;
  std::vector<Unit> units_;
};

// The parameters of `chosen`, in this order, into buckets.
void fill_buckets(Planner& planner, const std::vector<size_t>& chosen, const LayoutSizes& sizes) {
  const size_t before = planner.count();
  for (size_t param : chosen) {
    const size_t mine = planner.count() - before;
    const int64_t limit = mine <= 1 ? sizes.first_elements : sizes.elements;
    if (mine == 0 || !planner.has_room(param, limit)) planner.open(fmt::format("bucket {}", mine), false);
    planner.add(param);
  }
}

}  // namespace

std::vector<Unit> plan_buckets(const std::vector<ParamShape>& params, const LayoutSizes& sizes, int world) {
  Planner planner(params, world);
  std::vector<size_t> backwards(params.size());
  for (size_t i = 0; i < params.size(); ++i) backwards[i] = params.size() - 1 - i;
  fill_buckets(planner, backwards, sizes);
  return planner.finish();
}

std::vector<Unit> plan_parts(const std::vector<ParamShape>& params, const LayoutSizes& sizes, int world, bool sharded) {
  Planner planner(params, world);
  std::vector<size_t> small;
  const std::string* open = nullptr;
  for (size_t i = params.size(); i-- > 0;) {
    if (params[i].numel < sizes.persistent_elements) {
      small.push_back(i);
      continue;
    }
    if (!open || *open != params[i].part) planner.open(params[i].part, sharded);
    open = &params[i].part;
    planner.add(i);
  }
  fill_buckets(planner, small, sizes);
  return planner.finish();
}

Slice slice_of(const Unit& unit, int rank, int world) {
  const int64_t numel = unit.elements / world;
  return {rank * numel, numel};
}

std::vector<Overlap> overlaps(const Unit& unit, int64_t begin, int64_t end) {
  std::vector<Overlap> found;
  for (const Slot& slot : unit.slots) {
    const int64_t first = std::max(begin, slot.offset), last = std::min(end, slot.offset + slot.numel);
    if (first < last) found.push_back({slot.param, first - slot.offset, first - begin, last - first});
  }
  return found;
}

std::vector<optim::Run> runs_in(const Unit& unit, int64_t begin, int64_t end) {
  std::vector<optim::Run> runs;
  for (const Slot& slot : unit.slots) {
    const int64_t first = std::max(begin, slot.offset), last = std::min(end, slot.offset + slot.numel);
    if (first >= last) continue;
    // Padding between two parameters of one group is zero and stays zero: one long run is as right as two.
    const bool joins = !runs.empty() && runs.back().group == slot.group && first - begin - runs.back().end < kAlign;
    if (joins) runs.back().end = last - begin;
    else runs.push_back({first - begin, last - begin, slot.group});
  }
  return runs;
}

}  // namespace phalanx::engine::parallel
