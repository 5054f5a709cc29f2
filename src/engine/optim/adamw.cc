#include "engine/optim/adamw.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sqrt.h>

#include <cmath>

#include "engine/optim/device_adamw.h"
#include "engine/optim/row_kernels.h"
#include "engine/optim/row_pass.h"

namespace phalanx::engine::optim {

AdamW::AdamW(std::vector<Row> rows, std::vector<Group> groups, const AdamWOptions& options)
    : Optimizer(std::move(rows), std::move(groups)), options_(options), mean_(zeros_like_rows()), variance_(zeros_like_rows()) {}

void AdamW::step_row(size_t index) {
  at::NoGradGuard no_grad;
  const auto [beta1, beta2, epsilon] = options_;
  const double correction1 = 1 - std::pow(beta1, static_cast<double>(steps_done));
  const double correction2 = 1 - std::pow(beta2, static_cast<double>(steps_done));
  const Row& row = rows_[index];
  if (adamw_is_operator(row.params) && !plain) {
    operator_adamw({options_, lr_, grad_scale_, steps_done}, row, groups_, mean_[index], variance_[index]);
    return;
  }
  for (const Run& run : row.runs) {
    const Group& group = groups_[static_cast<size_t>(run.group)];
    const double lr = lr_ * group.lr_scale, keep = 1 - lr * group.weight_decay, root2 = std::sqrt(correction2), rate = -lr / correction1;
    if (by_loop(row)) {
      const AdamWPass pass{static_cast<float>(grad_scale_), static_cast<float>(keep),    static_cast<float>(beta1),
                           static_cast<float>(1 - beta1),   static_cast<float>(beta2),   static_cast<float>(1 - beta2),
                           static_cast<float>(root2),       static_cast<float>(epsilon), static_cast<float>(rate)};
      float* mean = mean_[index].data_ptr<float>();
      float* variance = variance_[index].data_ptr<float>();
      pass_over(row, run, [&](const Block& b) { adamw(pass, b.params, b.grads, mean + b.begin, variance + b.begin, b.n); });
      continue;
    }
    const int64_t n = run.end - run.begin;
    at::Tensor params = row.params.narrow(0, run.begin, n), mean = mean_[index].narrow(0, run.begin, n);
    at::Tensor variance = variance_[index].narrow(0, run.begin, n), grads = row.grads.narrow(0, run.begin, n).to(at::kFloat);
    if (grad_scale_ != 1) grads = grads * grad_scale_;
    mean.mul_(beta1).add_(grads, 1 - beta1);
    variance.mul_(beta2).addcmul_(grads, grads, 1 - beta2);
    params.mul_(keep).addcdiv_(mean, at::sqrt(variance).div_(root2).add_(epsilon), rate);
    if (row.compute.defined()) row.compute.narrow(0, run.begin, n).copy_(params);
  }
}

}  // namespace phalanx::engine::optim
