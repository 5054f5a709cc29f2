// AdamW on GPUs: libtorch's own kernel makes the pass over memory that the loops of row_pass.h make on CPUs.
#pragma once

#include "engine/optim/adamw.h"

namespace phalanx::engine::optim {

// Whether operator_adamw() takes rows like this one: on a GPU, with a libtorch that has the kernel.
bool adamw_is_operator(const at::Tensor& params);

struct AdamWStep {
  AdamWOptions options;
  double lr = 0, grad_scale = 1;
  int64_t number = 0;  // from 1
};

// One step of a row; mean and variance are fp32 and as long as the row. An element's result does not depend on where it lies.
void operator_adamw(const AdamWStep& step, const Row& row, const std::vector<Group>& groups, const at::Tensor& mean,
                    const at::Tensor& variance);

}  // namespace phalanx::engine::optim
