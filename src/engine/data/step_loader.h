// The steps of one rank, made ahead by worker threads.
//
// The order of steps and everything in them is a function of the data, the options and the position: never of the number of
// workers. Workers take plans (step_plan.h) in their order, make them into batches side by side, and the steps are handed out in
// order. Memory: at most max(1, workers × prefetch) steps are ready or being made at any time.
#pragma once

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/data/collate.h"
#include "engine/data/item_source.h"
#include "engine/data/plan/step_plan.h"

namespace phalanx::engine::data {

struct LoaderOptions {
  PlanOptions plan;        // plan.rows: of a whole step, all passes together
  int64_t accumulate = 1;  // passes; divides plan.rows
  int workers = 0;         // threads; 0: the caller of next() makes the steps
  int64_t prefetch = 2;    // steps made ahead per worker
  Padding padding;
};

struct Step {
  int64_t epoch = 0;
  int64_t step = 0;               // of the epoch, from 0
  bool last_of_epoch = false;     //
  int64_t rows_of_all = 0;        // of all ranks
  int64_t rows = 0;               // of this rank; 0 where an epoch's remainder has none for it
  int64_t targets = 0;            // of this rank, over all passes
  std::vector<MicroBatch> micro;  // the passes; an epoch's short last step may have fewer, or none
};

class StepLoader {
 public:
  // Errors: those of make_planner; kUnfit when threads cannot be started.
  static base::Result<std::unique_ptr<StepLoader>> create(std::shared_ptr<const Dataset> set, const LoaderOptions& options);
  static base::Result<std::unique_ptr<StepLoader>> create(std::shared_ptr<Stream> stream, const LoaderOptions& options);
  ~StepLoader();  // waits for the items being read at that moment

  // The next step, over the ends of epochs, for ever. On every rank there are equally many steps in an epoch, and each may be
  // asked for rows of its own. After an error the same error comes again, and the position stays before the step that has failed.
  base::Result<Step> next();

  // Behind the step that next() returned last. As JSON for a checkpoint; the same on all ranks.
  base::Json state() const;
  // Both throw away what was made ahead. Errors as Planner::restore and start; the loader stays where it was.
  base::Status restore(const base::Json& state);
  base::Status start(int64_t epoch);

  // Of all ranks together; none for a stream.
  std::optional<int64_t> steps_per_epoch() const { return planner_->steps_per_epoch(); }
  std::optional<int64_t> own_steps_per_epoch() const { return planner_->own_steps_per_epoch(); }

 private:
  struct Made {
    Step step;
    DataPosition after;
  };
  using Slot = std::optional<base::Result<Made>>;
  StepLoader(ItemSource source, std::unique_ptr<Planner> planner, const LoaderOptions& options);
  static base::Result<std::unique_ptr<StepLoader>> begin(ItemSource source, std::unique_ptr<Planner> planner, const LoaderOptions& options);
  base::Status start_workers();
  void stop_workers();
  void work();
  base::Result<Made> make(const StepPlan& plan) const;
  base::Result<Made> take();
  base::Status move(const std::function<base::Status()>& planner_moves);

  const ItemSource source_;
  const std::unique_ptr<Planner> planner_;  // the lock's, while workers run
  const LoaderOptions options_;
  DataPosition position_;              // the caller's
  std::optional<base::Error> failed_;  // the caller's

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  int64_t planned_ = 0, taken_ = 0;  // steps since the workers were started
  bool broken_ = false;              // no plans are made behind one that failed
  std::vector<Slot> ring_;           // step i is in ring_[i % size]
  std::vector<std::thread> threads_;
};

}  // namespace phalanx::engine::data
