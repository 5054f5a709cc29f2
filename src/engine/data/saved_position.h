// A position in the data as it stands in a checkpoint. Pure but for the dataset's header.
#pragma once

#include <string>

#include "engine/data/plan/step_plan.h"

namespace phalanx::engine::data {

// What a position is a position of. Two runs may go on with each other's positions when this is equal, whatever their world.
struct DataIdentity {
  std::string kind;          // "dataset" or "stream"
  int64_t size = -1;         // items; -1 for a stream
  uint64_t fingerprint = 0;  // of the data
};

base::Json save_position(const DataPosition& position, const DataIdentity& identity, const PlanOptions& options);

struct SavedPosition {
  int64_t epoch = 0, places = 0;
  base::Json mark;  // of a stream
};
// Error (kConfig) when something is missing or out of range, the data, the seed or the order is another one, or the position does not lie
// between two steps of G = rows × world places; the first difference is named.
base::Result<SavedPosition> read_position(const base::Json& state, const DataIdentity& identity, const PlanOptions& options);

}  // namespace phalanx::engine::data
