// An optimizer moves rows of parameters against their gradients, in one pass over memory per row. The arithmetic is that of torch.optim,
// one element at a time: an element's result depends on nothing but its own numbers, so it is bit for bit the same in whatever row
// or shard it lies.
//
// On CPU the pass is a loop of our own, shared out over torch's threads; elsewhere the same formulas as at:: operators.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/optim/row.h"

namespace phalanx::engine::optim {

// What an optimizer remembers of each parameter, for checkpoints: one fp32 tensor per row, as long as the row. Not copies.
struct NamedState {
  std::string name;  // torch's: "exp_avg"
  std::vector<at::Tensor> rows;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // One step with gradients · grad_scale, so that clipping and un-scaling cost no pass of their own.
  void step(double lr, double grad_scale = 1);
  // The same in pieces, for a caller whose rows become ready one after the other: begin, then every row once, in any order.
  void begin_step(double lr, double grad_scale = 1);
  virtual void step_row(size_t row) = 0;

  virtual std::vector<NamedState> states() const = 0;
  virtual std::string_view name() const = 0;  // "adamw"
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Group>& groups() const { return groups_; }

  // Part of the state: a resumed run sets it.
  int64_t steps_done = 0;
  // at:: operators on CPU too: the plain form, to hold the loops against.
  bool plain = false;

 protected:
  // The rows' tensors must keep their storage; Run::group is an index into groups.
  Optimizer(std::vector<Row> rows, std::vector<Group> groups);
  std::vector<at::Tensor> zeros_like_rows() const;  // fp32
  bool by_loop(const Row& row) const { return row.params.is_cpu() && !plain; }

  std::vector<Row> rows_;
  std::vector<Group> groups_;
  double lr_ = 0, grad_scale_ = 1;  // of the step under way
};

}  // namespace phalanx::engine::optim
