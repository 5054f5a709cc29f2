// Which items each step takes, and where the data stands behind it.
//
// An epoch is a row of places 0, 1, 2, …; step k takes the places [k·G, (k+1)·G), G = rows × world, and of these rank r takes
// r, r + world, r + 2·world, … So a step's items are the same for every world that divides G, and a position in the data is one
// number, the places that are done, which another number of ranks can take up. Places of a Dataset follow PyTorch's
// DistributedSampler, those of a Stream the stream.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/data/dataset.h"

namespace phalanx::engine::data {

// What becomes of the items at an epoch's end that do not fill a step of all ranks.
enum class Remainder {
  kDrop,  // left out
  kPad,   // PyTorch's drop_last=False: items from the start of the epoch until all ranks have equally many; the last step may be short
  kKeep,  // each item once: in the last step ranks have different numbers of rows, some none
};
std::string_view to_text(Remainder remainder);

struct PlanOptions {
  int world = 1;
  int rank = 0;
  int64_t rows = 1;     // per step on each rank
  bool shuffle = true;  // of a Dataset; a stream mixes itself
  uint64_t seed = 0;
  Remainder remainder = Remainder::kDrop;
};

// Between two steps.
struct DataPosition {
  int64_t epoch = 0;
  int64_t places = 0;                // done in this epoch, by all ranks
  std::function<base::Json()> mark;  // of a stream
};

struct StepPlan {
  int64_t epoch = 0;
  int64_t step = 0;            // of the epoch, from 0
  int64_t rows_of_all = 0;     // of all ranks
  bool last_of_epoch = false;  //
  std::vector<Ticket> items;   // of this rank; for a Dataset `number` is the index
  DataPosition after;
};

class Planner {
 public:
  virtual ~Planner() = default;
  // The steps one after the other, for ever: behind an epoch comes the next.
  virtual base::Result<StepPlan> next() = 0;
  virtual DataPosition position() const = 0;
  virtual base::Json state() const { return state_of(position()); }
  // The position as it stands in a checkpoint, with what it depends on.
  virtual base::Json state_of(const DataPosition& position) const = 0;
  // Error (kConfig): not a position of this data and these options, or not between two steps. Nothing has changed then.
  virtual base::Status restore(const base::Json& state) = 0;
  // To the start of an epoch.
  virtual base::Status start(int64_t epoch) = 0;
  // Of all ranks together, the same on each; none where the number of items is not known (a stream).
  virtual std::optional<int64_t> steps_per_epoch() const = 0;
  virtual std::optional<int64_t> own_steps_per_epoch() const = 0;  // in which this rank has rows
};

// Error (kConfig): no item, or with kDrop too few for one step.
base::Result<std::unique_ptr<Planner>> make_planner(const Dataset& set, const PlanOptions& options);
// Error (kConfig): kPad, which needs a known length; an empty stream, or with kDrop one too short for a step.
base::Result<std::unique_ptr<Planner>> make_planner(std::shared_ptr<Stream> stream, const PlanOptions& options);

}  // namespace phalanx::engine::data
