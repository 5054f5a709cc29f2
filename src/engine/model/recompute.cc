#include "engine/model/recompute.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <mutex>

#include "engine/autocast.h"

namespace phalanx::engine::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using BlockFunction = std::function<at::Tensor(const at::Tensor&)>;

struct FirstRun : torch::CustomClassHolder {
  BlockFunction block;
  AutocastState autocast;
  at::Tensor random;  // the generator's state, if the block draws
};

// The generator as it was in the first run while this lives, as it is now behind it.
class RandomAgain {
 public:
  RandomAgain(at::Device device, const at::Tensor& state) : device_(device) {
    if (!state.defined()) return;
    now_ = rng_state(device);
    set_rng_state(device, state);
  }
  ~RandomAgain() {
    if (now_.defined()) set_rng_state(device_, now_);
  }
  RandomAgain(const RandomAgain&) = delete;
  RandomAgain& operator=(const RandomAgain&) = delete;

 private:
  at::Device device_;
  at::Tensor now_;
};

struct Recompute : torch::autograd::Function<Recompute> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const c10::intrusive_ptr<FirstRun>& run) {
    run->autocast = autocast_of(input.device());
    // A rounded parameter made here, without a graph, must not be found by the second run: it would get no gradient.
    AutocastScope scope(input.device(), run->autocast, /*keep_casts=*/false);
    at::Tensor output = run->block(input);
    context->save_for_backward({input});
    context->saved_data["run"] = c10::IValue::make_capsule(run);
    return output;
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    auto* run = static_cast<FirstRun*>(context->saved_data["run"].toCapsule().get());
    at::Tensor input = context->get_saved_variables()[0].detach().requires_grad_(true), output;
    {
      at::AutoGradMode grad(true);
      RandomAgain random(input.device(), run->random);
      AutocastScope scope(input.device(), run->autocast, /*keep_casts=*/false);
      output = run->block(input);
    }
    torch::autograd::backward({output}, {grads[0]});
    return {input.grad(), at::Tensor()};
  }
};

}  // namespace

at::Tensor recomputed(BlockFunction block, const at::Tensor& input, bool random) {
  // Without a gradient to pass on, the graph of this would end here and the block's parameters would get none.
  if (!at::GradMode::is_enabled() || !input.requires_grad()) return block(input);
  auto run = c10::make_intrusive<FirstRun>();
  run->block = std::move(block);
  if (random) run->random = rng_state(input.device());
  return Recompute::apply(input, run);
}

at::Tensor rng_state(at::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_rng_state(at::Device device, const at::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace phalanx::engine::model
