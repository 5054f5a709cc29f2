// The part of a gradient's norm that lies in rows.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace phalanx::engine::optim {

// Σ x² in double, of contiguous fp32, bf16 or fp16 tensors. On CPU it does not depend on the number of threads. Not finite exactly if an
// element is not: squares of floats do not overflow a double.
double sum_of_squares(const std::vector<at::Tensor>& rows);

// What gradients are multiplied with so that their norm is at most `max_norm` (0: no limit), as torch.nn.utils.clip_grad_norm_ has it.
double clip_scale(double norm, double max_norm);

}  // namespace phalanx::engine::optim
