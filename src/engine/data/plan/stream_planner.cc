// The planner of a Stream. It is always one step ahead of what it has handed out: only so is it known which step is an epoch's last.
#include "base/counted.h"
#include "engine/data/plan/step_plan.h"

#include <fmt/format.h>

#include "base/try.h"
#include "base/unicode.h"
#include "engine/data/plan/placed_planner.h"

namespace phalanx::engine::data {
namespace {

class StreamPlanner : public PlacedPlanner {
 public:
  StreamPlanner(std::shared_ptr<Stream> stream, const PlanOptions& options)
      : PlacedPlanner(options, {"stream", -1, stream->fingerprint()}), stream_(std::move(stream)) {}

  base::Result<StepPlan> next() override {
    if (ahead_.empty()) TRY(start(at_.epoch));  // a call before failed
    StepPlan plan = take(static_cast<int64_t>(ahead_.size()), [&](int64_t place) { return ahead_[static_cast<size_t>(place)]; });
    const DataPosition before = at_;
    const std::vector<Ticket> taken = std::move(ahead_);
    at_ = {before.epoch, before.places + plan.rows_of_all, stream_->mark()};
    TRY(read_ahead());
    plan.last_of_epoch = ahead_.empty();
    if (ahead_.empty()) TRY(start(before.epoch + 1));
    plan.after = at_;
    return plan;
  }

  base::Status restore(const base::Json& state) override {
    TRY_ASSIGN(SavedPosition saved, read(state));
    TRY(stream_->seek(saved.mark));
    at_ = {saved.epoch, saved.places, stream_->mark()};
    TRY(read_ahead());
    return ahead_.empty() ? start(saved.epoch + 1) : base::ok();  // a larger step may find too little left
  }

  base::Status start(int64_t epoch) override {
    stream_->start(options_.seed, epoch);
    at_ = {epoch, 0, stream_->mark()};
    TRY(read_ahead());
    if (!ahead_.empty()) return base::ok();
    const bool drop = options_.remainder == Remainder::kDrop;
    return base::fail(base::ErrorKind::kConfig,
                      fmt::format("{} {}", base::quote(stream_->name()), drop ? "is too short for one step" : "contains no items"))
        .because(base::counted("a step takes {} items ({} ranks × {})", step_places_, options_.world, options_.rows));
  }

  std::optional<int64_t> steps_per_epoch() const override { return std::nullopt; }
  std::optional<int64_t> own_steps_per_epoch() const override { return std::nullopt; }

 private:
  // The tickets of the next step; none when the epoch is over.
  base::Status read_ahead() {
    ahead_.clear();
    while (static_cast<int64_t>(ahead_.size()) < step_places_) {
      TRY_ASSIGN(std::optional<Ticket> ticket, stream_->next());
      if (!ticket) break;
      ahead_.push_back(*ticket);
    }
    if (options_.remainder == Remainder::kDrop && static_cast<int64_t>(ahead_.size()) < step_places_) ahead_.clear();
    return base::ok();
  }

  std::shared_ptr<Stream> stream_;
  std::vector<Ticket> ahead_;  // of all ranks, from at_ on
};

}  // namespace

base::Result<std::unique_ptr<Planner>> make_planner(std::shared_ptr<Stream> stream, const PlanOptions& options) {
  if (options.remainder == Remainder::kPad)
    return base::fail(base::ErrorKind::kConfig, "a stream cannot be padded")
        .because("the length of a stream is not known in advance")
        .with_hint("set data.remainder=drop or data.remainder=keep");
  auto planner = std::make_unique<StreamPlanner>(std::move(stream), options);
  TRY(planner->start(0));
  return std::unique_ptr<Planner>(std::move(planner));
}

}  // namespace phalanx::engine::data
