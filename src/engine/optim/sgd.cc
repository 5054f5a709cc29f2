#include "engine/optim/sgd.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>

#include "engine/optim/row_kernels.h"
#include "engine/optim/row_pass.h"
#include "engine/require.h"

namespace phalanx::engine::optim {

Sgd::Sgd(std::vector<Row> rows, std::vector<Group> groups, const SgdOptions& options)
    : Optimizer(std::move(rows), std::move(groups)), options_(options) {
  require(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
          "Nesterov momentum needs a momentum above 0 and no dampening, not {} and {}", options.momentum, options.dampening);
  if (options.momentum != 0) momentum_ = zeros_like_rows();
}

std::vector<NamedState> Sgd::states() const {
  if (momentum_.empty()) return {};
  return {{"momentum_buffer", momentum_}};
}

void Sgd::step_row(size_t index) {
  at::NoGradGuard no_grad;
  const auto [momentum, dampening, nesterov] = options_;
  const Row& row = rows_[index];
  const bool first = steps_done == 1;  // torch's buffer begins as the first gradient, without dampening
  for (const Run& run : row.runs) {
    const Group& group = groups_[static_cast<size_t>(run.group)];
    const double lr = lr_ * group.lr_scale;
    if (by_loop(row)) {
      const SgdPass pass{static_cast<float>(grad_scale_),
                         static_cast<float>(group.weight_decay),
                         static_cast<float>(momentum),
                         static_cast<float>(1 - dampening),
                         static_cast<float>(-lr),
                         first,
                         nesterov};
      float* buffer = momentum_.empty() ? nullptr : momentum_[index].data_ptr<float>();
      pass_over(row, run, [&](const Block& b) {
        if (buffer) sgd_momentum(pass, b.params, b.grads, buffer + b.begin, b.n);
        else sgd(pass, b.params, b.grads, b.n);
      });
      continue;
    }
    const int64_t n = run.end - run.begin;
    at::Tensor params = row.params.narrow(0, run.begin, n), moved = row.grads.narrow(0, run.begin, n).to(at::kFloat) * grad_scale_;
    if (group.weight_decay != 0) moved.add_(params, group.weight_decay);
    if (!momentum_.empty()) {
      at::Tensor buffer = momentum_[index].narrow(0, run.begin, n);
      if (first) buffer.copy_(moved);
      else buffer.mul_(momentum).add_(moved, 1 - dampening);
      moved = nesterov ? moved.add_(buffer, momentum) : buffer;
    }
    params.add_(moved, -lr);
    if (row.compute.defined()) row.compute.narrow(0, run.begin, n).copy_(params);
  }
}

}  // namespace phalanx::engine::optim
