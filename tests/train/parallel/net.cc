#include "net.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

namespace phalanx::net {

using engine::model::Embedding;
using engine::model::LayerNorm;
using engine::model::Linear;
using engine::model::LinearImpl;

NetImpl::NetImpl(int64_t width, int64_t depth)
    : embed(register_module("embed", Embedding(16, width))), layers(register_module("layers", torch::nn::ModuleList())) {
  for (int64_t i = 0; i < depth; ++i) layers->push_back(Linear(width, width));
  norm = register_module("norm", LayerNorm(width));
  spare = register_parameter("spare", at::ones({width}));
  seen = register_buffer("seen", at::zeros({1}));
}

void NetImpl::init(uint64_t seed) {
  at::NoGradGuard no_grad;
  at::Generator generator = at::detail::createCPUGenerator();
  generator.set_current_seed(seed);
  for (auto& item : named_parameters())
    if (item.value().dim() > 1) item.value().normal_(0, 0.3, generator);
}

at::Tensor NetImpl::loss(const at::Tensor& tokens, bool use_spare) {
  {
    at::NoGradGuard no_grad;
    seen.add_(tokens.size(0));
  }
  at::Tensor x = embed(tokens);
  for (size_t i = 0; i < layers->size(); ++i) x = x + at::gelu(layers[i]->as<LinearImpl>()->forward(x));
  if (use_spare) x = x * spare;
  at::Tensor logits = at::linear(norm(x), embed->weight);
  at::Tensor target = (tokens * 7 + 3).remainder(16);
  return at::cross_entropy_loss(logits.view({-1, 16}), target.view({-1}), {}, at::Reduction::Sum);
}

at::Tensor tokens(int64_t rows, int64_t step) {
  return (at::arange(rows * 5) * 5 + at::arange(rows * 5).floor_divide(5) * (step + 3) + step).remainder(16).view({rows, 5});
}

}  // namespace phalanx::net
