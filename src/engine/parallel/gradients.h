// From autograd's gradients to each rank's slice of their sum.
//
// How. Autograd adds each gradient into .grad() in a node of its own, AccumulateGrad; a hook behind that node says "this gradient is
// final". The gradients of a unit are moved into its flat buffer; when all are there, the unit's reduction starts, while backward goes
// on with the layers below. Units start strictly in one order, the same on all ranks, whatever order their hooks fire in. What no
// hook completed (parameters this batch did not use) is reduced with zeros when backward has returned: we own the backward() call, so
// no callback inside autograd is needed, no walk over the graph for unused parameters, and a reentrant backward inside a model
// (activation checkpointing) is no special case.
//
//   kAll      stage 0: the flat buffer holds the sum on every rank (all-reduce); .grad() are views of it
//   kSlice    stage 1, and shared parameters: the sum is made in this rank's slice of the flat buffer (reduce-scatter in place)
//   kDropped  stages 2, 3: one of two buffers carries a unit's gradients to the reduction, only this rank's slice of the sum is kept
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/group.h"
#include "engine/parallel/in_order.h"
#include "engine/parallel/layout.h"

namespace phalanx::engine::parallel {

enum class Keep { kAll, kSlice, kDropped };

struct GradientRules {
  Keep keep = Keep::kAll;
  bool mean = true;
  bool each_micro_batch = false;  // reduce every micro-batch by itself; kDropped always does
  bool learn_repeats = true;      // the first backward counts how often each gradient comes, and reduces behind it
  at::ScalarType dtype = at::kFloat;
};

class Gradients {
 public:
  // `params[i]` belongs to the slots with param == i. All references must outlive this. `unit_done(u)`: the gradients of unit u have
  // left autograd, its parameters are not needed any more in this backward.
  Gradients(const std::vector<Unit>& units, std::vector<at::Tensor> params, std::vector<std::string> names, comm::Group& group,
            InOrder& queue, const GradientRules& rules, std::function<void(size_t unit)> unit_done);
  ~Gradients();

  // loss.backward() and everything that follows from it; an undefined loss contributes zeros. `last`: of the micro-batches of a step;
  // then slice(u) is final. Throws where a gradient came after its unit had been reduced.
  void backward(const at::Tensor& loss, bool last);
  void clear();  // the next backward begins anew

  at::Tensor slice(size_t unit) const;  // this rank's slice of the reduced gradients, 1-D
  at::Tensor whole(size_t unit) const;  // kAll: all of them
  int64_t held_bytes() const;           // by this object's buffers, without the next
  int64_t carrier_bytes() const;        // by what carries units to their reduction
  // Reductions of the last backward that began before autograd was done. A group that works at wait() begins none; see
  // comm::Pending::begun().
  size_t overlapped() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the hooks, which may outlive this inside a graph
};

}  // namespace phalanx::engine::parallel
