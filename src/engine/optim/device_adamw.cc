#include "engine/optim/device_adamw.h"

#include <ATen/ops/full.h>

#include <stdexcept>

#include "engine/torch_version.h"

#if PHALANX_TORCH_SINCE(2, 5)
#include <ATen/ops/_fused_adamw.h>
#endif

namespace phalanx::engine::optim {
namespace {

constexpr bool kHasOperator = PHALANX_TORCH_SINCE(2, 5);

// The runs of one group, as the operator wants them.
struct Lists {
  std::vector<at::Tensor> params, grads, mean, variance, steps;
};

void adamw([[maybe_unused]] Lists& lists, [[maybe_unused]] const AdamWStep& step, [[maybe_unused]] const Group& group) {
#if PHALANX_TORCH_SINCE(2, 5)
  const auto [beta1, beta2, epsilon] = step.options;
  at::_fused_adamw_(lists.params, lists.grads, lists.mean, lists.variance, {}, lists.steps, step.lr * group.lr_scale, beta1, beta2,
                    group.weight_decay, epsilon, /*amsgrad=*/false, /*maximize=*/false);
#else
  throw std::logic_error("this libtorch has no operator for AdamW");
#endif
}

}  // namespace

bool adamw_is_operator(const at::Tensor& params) { return kHasOperator && params.is_cuda(); }

void operator_adamw(const AdamWStep& step, const Row& row, const std::vector<Group>& groups, const at::Tensor& mean,
                    const at::Tensor& variance) {
  if (row.runs.empty()) return;
  // The operator would write the scaled gradients back.
  at::Tensor grads = row.grads.to(at::kFloat);
  if (step.grad_scale != 1) grads = grads * step.grad_scale;
  const at::Tensor number = at::full({}, static_cast<double>(step.number), row.params.options());
  std::vector<Lists> of_group(groups.size());
  for (const Run& run : row.runs) {
    Lists& lists = of_group[static_cast<size_t>(run.group)];
    const auto part = [&](const at::Tensor& whole) { return whole.narrow(0, run.begin, run.end - run.begin); };
    lists.params.push_back(part(row.params));
    lists.grads.push_back(part(grads));
    lists.mean.push_back(part(mean));
    lists.variance.push_back(part(variance));
    lists.steps.push_back(number);
  }
  for (size_t group = 0; group < groups.size(); ++group)
    if (!of_group[group].params.empty()) adamw(of_group[group], step, groups[group]);
  if (!row.compute.defined()) return;
  const int64_t begin = row.runs.front().begin, n = row.runs.back().end - begin;
  row.compute.narrow(0, begin, n).copy_(row.params.narrow(0, begin, n));
}

}  // namespace phalanx::engine::optim
