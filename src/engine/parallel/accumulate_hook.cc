#include "engine/parallel/accumulate_hook.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace phalanx::engine::parallel {

namespace autograd = torch::autograd;

namespace {

struct FinalHook final : autograd::FunctionPostHook {
  explicit FinalHook(std::function<void()> call) : call_(std::move(call)) {}
  autograd::variable_list operator()(const autograd::variable_list& outputs, const autograd::variable_list&) override {
    call_();
    return outputs;
  }
  std::function<void()> call_;
};

}  // namespace

std::shared_ptr<void> on_gradient(at::Tensor& parameter, std::function<void()> call) {
  auto node = autograd::impl::grad_accumulator(parameter);
  node->add_post_hook(std::make_unique<FinalHook>(std::move(call)));
  return std::make_shared<decltype(node)>(std::move(node));
}

}  // namespace phalanx::engine::parallel
