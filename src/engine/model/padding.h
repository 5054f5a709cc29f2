// Sequences of different lengths as rectangles, for operators that know only rectangles.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace phalanx::engine::model {

// Sequences that lie end to end, in groups of similar lengths, each brought to one length: behind a shorter one its last row is repeated.
// All groups together have less than twice as many places as there are rows.
struct Padding {
  struct Group {
    int64_t sequences = 0, longest = 0;
    at::Tensor row_of_place{};  // [sequences · longest]
  };
  std::vector<Group> groups;
  at::Tensor place_of_row{};  // [rows], in the groups one after the other; it and row_of_place undefined where all have one length
  int64_t longest() const { return groups.front().longest; }
};

// Sequence i is rows starts[i] to starts[i + 1].
Padding padding_of(const std::vector<int64_t>& starts, at::Device device);

// x [rows, ...] -> of each group [sequences · longest, ...]. Differentiable under one condition: nothing is learned from the repeated rows,
// so that their gradients are zero. Then a row's gradient is read from its one place; adding up over all places would have every repeated
// row wait for the others at one address.
std::vector<at::Tensor> padded(const Padding& padding, const at::Tensor& x);
// The way back; the gradients of repeated rows are zero.
at::Tensor unpadded(const Padding& padding, const std::vector<at::Tensor>& groups);

}  // namespace phalanx::engine::model
