#include "engine/model/gpt.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace engine::model {

GptImpl::GptImpl(const GptShape& gpt_shape)
    : shape(gpt_shape),
      embed(register_module("embed", Embedding(shape.vocabulary, shape.width))),
      position(register_module("position", Embedding(shape.context, shape.width))) {
  for (int64_t layer = 0; layer < shape.layers; ++layer)
    blocks.push_back(register_module(fmt::format("block{}", layer), Block(shape.width, shape.heads, shape.context)));
  norm = register_module("norm", LayerNorm(shape.width));
}

void GptImpl::init(uint64_t seed) {
  at::NoGradGuard no_grad;
  at::Generator generator = at::detail::createCPUGenerator();
  generator.set_current_seed(seed);
  const double residual = 0.02 / std::sqrt(2.0 * static_cast<double>(shape.layers));
  for (auto& item : named_parameters()) {
    const std::string& name = item.key();
    at::Tensor& value = item.value();
    const bool ends_branch = name.ends_with("attention.out.weight") || name.ends_with("down.weight");
    if (value.dim() > 1) value.normal_(0, ends_branch ? residual : 0.02, generator);
    else value.fill_(name.ends_with("weight") ? 1 : 0);
  }
}

at::Tensor GptImpl::forward(const at::Tensor& tokens) {
  at::Tensor places = at::arange(tokens.size(1), tokens.options());
  at::Tensor x = embed(tokens) + position(places);
  for (Block& block : blocks) x = block(x);
  return at::linear(norm(x), embed->weight);
}

at::Tensor GptImpl::loss(const at::Tensor& tokens, const at::Tensor& targets) {
  at::Tensor logits = forward(tokens);
  return at::cross_entropy_loss(logits.view({-1, logits.size(-1)}), targets.view({-1}));
}

std::vector<int64_t> generate(Gpt& gpt, const std::vector<int64_t>& prompt, const SampleOptions& options) {
  at::NoGradGuard no_grad;
  at::Generator generator = at::detail::createCPUGenerator();
  generator.set_current_seed(options.seed);
  const at::Device device = gpt->embed->weight.device();
  std::vector<int64_t> all = prompt;
  for (int64_t i = 0; i < options.count; ++i) {
    const int64_t seen = std::min<int64_t>(static_cast<int64_t>(all.size()), gpt->shape.context);
    at::Tensor window =
        at::from_blob(all.data() + (static_cast<int64_t>(all.size()) - seen), {1, seen}, at::TensorOptions().dtype(at::kLong));
    at::Tensor logits = gpt(window.to(device)).select(1, seen - 1).squeeze(0).to(at::kCPU, at::kFloat);
    if (options.temperature <= 0) {
      all.push_back(at::argmax(logits).item<int64_t>());
      continue;
    }
    const int64_t keep = options.top_k > 0 ? std::min(options.top_k, logits.size(0)) : logits.size(0);
    auto [values, ids] = at::topk(logits, keep);
    at::Tensor choice = at::multinomial(at::softmax(values / options.temperature, -1), 1, false, generator);
    all.push_back(ids[choice.item<int64_t>()].item<int64_t>());
  }
  return {all.begin() + static_cast<int64_t>(prompt.size()), all.end()};
}

}  // namespace engine::model
