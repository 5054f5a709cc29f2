#include "engine/optim/lion.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>

#include "engine/optim/row_kernels.h"
#include "engine/optim/row_pass.h"

namespace phalanx::engine::optim {

Lion::Lion(std::vector<Row> rows, std::vector<Group> groups, const LionOptions& options)
    : Optimizer(std::move(rows), std::move(groups)), options_(options), mean_(zeros_like_rows()) {}

void Lion::step_row(size_t index) {
  at::NoGradGuard no_grad;
  const auto [beta1, beta2] = options_;
  const Row& row = rows_[index];
  for (const Run& run : row.runs) {
    const Group& group = groups_[static_cast<size_t>(run.group)];
    const double lr = lr_ * group.lr_scale, keep = 1 - lr * group.weight_decay;
    if (by_loop(row)) {
      const LionPass pass{static_cast<float>(grad_scale_), static_cast<float>(keep),  static_cast<float>(beta1),
                          static_cast<float>(1 - beta1),   static_cast<float>(beta2), static_cast<float>(1 - beta2),
                          static_cast<float>(-lr)};
      float* mean = mean_[index].data_ptr<float>();
      pass_over(row, run, [&](const Block& b) { lion(pass, b.params, b.grads, mean + b.begin, b.n); });
      continue;
    }
    const int64_t n = run.end - run.begin;
    at::Tensor params = row.params.narrow(0, run.begin, n), mean = mean_[index].narrow(0, run.begin, n);
    at::Tensor grads = row.grads.narrow(0, run.begin, n).to(at::kFloat) * grad_scale_;
    params.mul_(keep).add_((mean * beta1).add_(grads, 1 - beta1).sign_(), -lr);
    mean.mul_(beta2).add_(grads, 1 - beta2);
    if (row.compute.defined()) row.compute.narrow(0, run.begin, n).copy_(params);
  }
}

}  // namespace phalanx::engine::optim
