// The planner of a Dataset.
#include "base/counted.h"
#include "engine/data/plan/step_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/try.h"
#include "base/unicode.h"
#include "engine/data/plan/placed_planner.h"
#include "engine/data/plan/sampler.h"

namespace phalanx::engine::data {
namespace {

class SetPlanner : public PlacedPlanner {
 public:
  SetPlanner(const Dataset& set, const PlanOptions& options) : PlacedPlanner(options, {"dataset", set.size(), set.fingerprint()}) {
    const int64_t n = identity_.size, world = options.world;
    if (options.remainder == Remainder::kDrop) places_ = n / step_places_ * step_places_;
    else places_ = options.remainder == Remainder::kKeep ? n : (n + world - 1) / world * world;
  }

  base::Result<StepPlan> next() override {
    if (options_.shuffle && order_epoch_ != at_.epoch) {
      order_ = epoch_order(identity_.size, options_.seed, at_.epoch);
      order_epoch_ = at_.epoch;
    }
    const int64_t end = std::min(at_.places + step_places_, places_);
    StepPlan plan = take(end - at_.places, [&](int64_t place) {
      const int64_t index = (at_.places + place) % identity_.size;
      return Ticket{options_.shuffle ? order_[static_cast<size_t>(index)] : index, 0, 0};
    });
    plan.last_of_epoch = end == places_;
    at_ = plan.last_of_epoch ? DataPosition{at_.epoch + 1, 0, {}} : DataPosition{at_.epoch, end, {}};
    plan.after = at_;
    return plan;
  }

  base::Status restore(const base::Json& state) override {
    TRY_ASSIGN(SavedPosition saved, read(state));
    // With kDrop a larger step can leave out what a smaller one had reached: then the epoch is over.
    at_ = saved.places >= places_ ? DataPosition{saved.epoch + 1, 0, {}} : DataPosition{saved.epoch, saved.places, {}};
    return base::ok();
  }

  base::Status start(int64_t epoch) override {
    at_ = {epoch, 0, {}};
    return base::ok();
  }

  std::optional<int64_t> steps_per_epoch() const override { return (places_ + step_places_ - 1) / step_places_; }
  std::optional<int64_t> own_steps_per_epoch() const override {
    const int64_t whole = places_ / step_places_;
    return whole + (places_ - whole * step_places_ > options_.rank ? 1 : 0);
  }

 private:
  int64_t places_ = 0;        // of an epoch
  int64_t order_epoch_ = -1;  // whose order is in order_
  std::vector<int64_t> order_;
};

}  // namespace

std::string_view to_text(Remainder remainder) {
  return remainder == Remainder::kDrop ? "drop" : remainder == Remainder::kPad ? "pad" : "keep";
}

base::Result<std::unique_ptr<Planner>> make_planner(const Dataset& set, const PlanOptions& options) {
  const std::string name = base::quote(set.name());
  const int64_t size = set.size();
  if (size == 0) return base::fail(base::ErrorKind::kConfig, fmt::format("{} contains no items", name));
  const int64_t step = options.rows * options.world;
  if (options.remainder == Remainder::kDrop && size < step)
    return base::fail(base::ErrorKind::kConfig, fmt::format("{} is too short for one step", name))
        .because(base::counted("it contains {} items, but a step takes {} ({} ranks × {})", size, step, options.world, options.rows))
        .with_hint("reduce train.batch, or set data.remainder=keep");
  return std::unique_ptr<Planner>(std::make_unique<SetPlanner>(set, options));
}

}  // namespace phalanx::engine::data
