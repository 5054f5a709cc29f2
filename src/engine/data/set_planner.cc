// The planner of a Dataset.
#include "engine/data/step_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/unicode.h"
#include "engine/data/sampler.h"
#include "engine/data/saved_position.h"

namespace engine::data {
namespace {

class SetPlanner : public Planner {
 public:
  SetPlanner(std::shared_ptr<const Dataset> set, const PlanOptions& options)
      : set_(std::move(set)),
        options_(options),
        identity_{"dataset", set_->size(), set_->fingerprint()},
        step_places_(options.rows * options.world) {
    const int64_t n = identity_.size, world = options.world;
    if (options.remainder == Remainder::kDrop) places_ = n / step_places_ * step_places_;
    else places_ = options.remainder == Remainder::kKeep ? n : (n + world - 1) / world * world;
  }

  base::Result<StepPlan> next() override {
    if (options_.shuffle && order_epoch_ != at_.epoch) {
      order_ = epoch_order(identity_.size, options_.seed, at_.epoch);
      order_epoch_ = at_.epoch;
    }
    StepPlan plan{.epoch = at_.epoch, .step = at_.places / step_places_, .items = {}, .after = {}};
    const int64_t end = std::min(at_.places + step_places_, places_);
    plan.rows_of_all = end - at_.places;
    plan.items.reserve(static_cast<size_t>(options_.rows));
    for (int64_t place = at_.places + options_.rank; place < end; place += options_.world) {
      const int64_t index = place % identity_.size;
      plan.items.push_back({options_.shuffle ? order_[static_cast<size_t>(index)] : index, 0, 0});
    }
    plan.last_of_epoch = end == places_;
    at_ = plan.last_of_epoch ? DataPosition{at_.epoch + 1, 0, {}} : DataPosition{at_.epoch, end, {}};
    plan.after = at_;
    return plan;
  }

  DataPosition position() const override { return at_; }
  base::Json state_of(const DataPosition& position) const override { return save_position(position, identity_, options_); }

  base::Status restore(const base::Json& state) override {
    TRY_ASSIGN(SavedPosition saved, read_position(state, identity_, options_));
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
  std::shared_ptr<const Dataset> set_;
  PlanOptions options_;
  DataIdentity identity_;
  int64_t step_places_;
  int64_t places_ = 0;  // of an epoch
  DataPosition at_;
  int64_t order_epoch_ = -1;  // whose order is in order_
  std::vector<int64_t> order_;
};

}  // namespace

std::string_view to_text(Remainder remainder) {
  return remainder == Remainder::kDrop ? "drop" : remainder == Remainder::kPad ? "pad" : "keep";
}

base::Result<std::unique_ptr<Planner>> make_planner(std::shared_ptr<const Dataset> set, const PlanOptions& options) {
  CHECK(options.rows > 0 && options.world > 0 && options.rank >= 0 && options.rank < options.world);
  const std::string name = base::quote(set->name());
  const int64_t size = set->size();
  if (size == 0) return base::fail(base::ErrorKind::kConfig, fmt::format("{} holds no items", name));
  const int64_t step = options.rows * options.world;
  if (options.remainder == Remainder::kDrop && size < step)
    return base::fail(base::ErrorKind::kConfig, fmt::format("{} is too short for one step", name))
        .because(fmt::format("it holds {} items, and a step takes {} ({} ranks × {})", size, step, options.world, options.rows))
        .with_hint("make the batch smaller, or set data.remainder=keep");
  return std::unique_ptr<Planner>(std::make_unique<SetPlanner>(std::move(set), options));
}

}  // namespace engine::data
