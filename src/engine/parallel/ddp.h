// Data parallel: every rank holds the whole model and a share of the batch; after backward every rank holds the mean of
// all ranks' gradients.
//
// How. Autograd adds each gradient into .grad() in a node of its own, AccumulateGrad; a hook behind that node says "this
// gradient is final". When all gradients of a bucket are final its all-reduce starts, while backward goes on with the
// layers below. Buckets start strictly in their order, so that all ranks run the same operations in the same order
// whatever order their hooks fire in. What no hook started (parameters this batch did not use) starts after backward: we
// own the backward() call, so no callback inside autograd is needed, and reentrant checkpointing inside a model is safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "base/result.h"
#include "engine/comm/group.h"
#include "engine/parallel/flat.h"

namespace engine::parallel {

class Ddp {
 public:
  // Installs the hooks. `buckets` and `group` must outlive this.
  Ddp(std::vector<Bucket>& buckets, comm::Group& group);
  ~Ddp();
  Ddp(const Ddp&) = delete;
  Ddp& operator=(const Ddp&) = delete;

  // All ranks must have the same parameters by name, shape and dtype (kConfig names the ranks that differ); then all
  // take rank 0's values.
  base::Status start_equal();

  // loss.backward(). With reduce, the gradients are the mean over all ranks when it returns; without, they only add up
  // locally (all but the last of a step's micro-batches).
  void backward(const at::Tensor& loss, bool reduce);

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the hooks, which may outlive this inside a graph
};

}  // namespace engine::parallel
