// What the planners of a Dataset and of a Stream have in common: the arithmetic of places (step_plan.h), and positions.
#pragma once

#include <utility>

#include "base/check.h"
#include "engine/data/saved_position.h"

namespace phalanx::engine::data {

class PlacedPlanner : public Planner {
 public:
  DataPosition position() const override { return at_; }
  base::Json state_of(const DataPosition& position) const override { return save_position(position, identity_, options_); }

 protected:
  PlacedPlanner(const PlanOptions& options, DataIdentity identity)
      : options_(options), identity_(std::move(identity)), step_places_(options.rows * options.world) {
    PHALANX_CHECK(options.rows > 0 && options.world > 0 && options.rank >= 0 && options.rank < options.world);
  }

  // The step of the `count` places from at_ on; `ticket(i)` is of the i-th of them. Where the data stands behind it is the caller's to say.
  template <class TicketOf>
  StepPlan take(int64_t count, const TicketOf& ticket) const {
    StepPlan plan{.epoch = at_.epoch, .step = at_.places / step_places_, .rows_of_all = count, .items = {}, .after = {}};
    plan.items.reserve(static_cast<size_t>(options_.rows));
    for (int64_t place = options_.rank; place < count; place += options_.world) plan.items.push_back(ticket(place));
    return plan;
  }
  base::Result<SavedPosition> read(const base::Json& state) const { return read_position(state, identity_, options_); }

  const PlanOptions options_;
  const DataIdentity identity_;
  const int64_t step_places_;  // of all ranks
  DataPosition at_;            // before the next step
};

}  // namespace phalanx::engine::data
