// Stage 3: which units' parameters are whole at this moment.
//
// A sharded unit's parameters are gathered when an operation is about to touch one of them, whatever the operation is and wherever it
// runs: in forward, in backward (which touches what forward saved), in a recomputation for activation checkpointing, in evaluation, or in
// the module's own initialisation. So the module needs no hooks and no wrapper, a weight may be tied to another, and a part may be used
// twice or not at all. torch announces operations to observers before it runs them (at::RecordFunction, which its profiler uses).
//
// Few units are whole at a time (Options::live_units); the one that was touched longest ago goes first, and a unit whose gradients are
// all there goes at once. The order of one step is the prediction for the next: the next unit's gather starts while the present one
// works. A wrong prediction costs time only.
//
// Gathers are collective, so all ranks must touch the units in the same order: the same model on every rank, no branches that depend
// on the data of a rank. (comm's mismatch check names a rank that does not.)
#pragma once

#include <ATen/record_function.h>

#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/group.h"
#include "engine/parallel/in_order.h"
#include "engine/parallel/live_storage.h"

namespace phalanx::engine::parallel {

class ParamGather {
 public:
  // `group` and `queue` must outlive this. Used from one thread; backward may run on another as long as that one waits.
  ParamGather(comm::Group& group, InOrder& queue, int live_units, bool prefetch);
  ~ParamGather();

  // Adds a unit of `elements`, without memory; `shard` is this rank's slice of it, in a window of the group. Returns its number.
  size_t add(std::string name, int64_t elements, at::Tensor shard);
  const at::Tensor& tensor(size_t unit) const;  // its whole flat tensor, to take views of

  void release(size_t unit);  // no longer needed (its gradients are there)
  void release_all();         // the shards have changed: gather anew
  void end_step();            // what was touched so far is the prediction for the next step

  // While writing, what the touched units hold when they go is rank 0's, and is kept in the shards. For initialisation.
  void begin_writing();
  void end_writing();

  // A gather that failed (a rank is gone) cannot throw where it happened: torch does not let an observer. Throws it now, if one has.
  void rethrow() const;

  int64_t live_bytes_peak() const { return peak_bytes_; }

 private:
  struct ShardedUnit;
  friend std::unique_ptr<at::ObserverContext> announce(const at::RecordFunction& operation);
  void touch(const std::vector<ShardedUnit*>& ones);
  void touch_or_fail(const std::vector<ShardedUnit*>& ones);
  void start_gather(ShardedUnit& one);
  void drop(ShardedUnit& one);
  void make_room(size_t wanted, const std::vector<ShardedUnit*>& keep);
  void note_use(ShardedUnit& one);

  comm::Group& group_;
  InOrder& queue_;
  size_t live_limit_;
  bool prefetch_;
  bool writing_ = false;
  std::exception_ptr failure_;
  std::vector<std::unique_ptr<ShardedUnit>> units_;
  std::deque<ShardedUnit*> live_;  // touched longest ago first; being gathered, or whole
  std::vector<ShardedUnit*> expected_, seen_;
  bool on_track_ = false;
  int64_t live_bytes_ = 0, peak_bytes_ = 0;
  at::CallbackHandle observer_;
};

}  // namespace phalanx::engine::parallel
