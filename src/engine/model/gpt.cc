#include "engine/model/gpt.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/topk.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/model/fused.h"
#include "engine/model/recompute.h"

namespace phalanx::engine::model {

GptImpl::GptImpl(const GptShape& gpt_shape, const GptExecution& gpt_execution)
    : shape(gpt_shape),
      execution(gpt_execution),
      embed(register_module("embed", Embedding(shape.vocabulary, shape.width))),
      position(register_module("position", Embedding(shape.context, shape.width))) {
  for (int64_t layer = 0; layer < shape.layers; ++layer)
    blocks.push_back(register_module(fmt::format("block{}", layer), Block(shape.width, shape.heads, shape.dropout, execution.kernels)));
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
    if (value.dim() < 2) {
      value.fill_(name.ends_with("weight") ? 1 : 0);
      continue;
    }
    at::Tensor drawn = value.is_cpu() ? value : at::empty(value.sizes());
    drawn.normal_(0, ends_branch ? residual : 0.02, generator);
    if (!value.is_cpu()) value.copy_(drawn);
  }
}

at::Tensor GptImpl::hidden(const at::Tensor& tokens) {
  at::Tensor places = at::arange(tokens.size(1), tokens.options());
  at::Tensor x = embed(tokens) + position(places);
  if (shape.dropout > 0) x = at::dropout(x, shape.dropout, is_training());
  for (Block& block : blocks) {
    if (!execution.recompute_blocks) x = block(x);
    else x = recomputed([block](const at::Tensor& input) mutable { return block(input); }, x, shape.dropout > 0 && is_training());
  }
  return norm(x);
}

at::Tensor GptImpl::forward(const at::Tensor& tokens) { return at::linear(hidden(tokens), embed->weight); }

SummedLoss GptImpl::loss(const at::Tensor& tokens, const at::Tensor& targets) {
  return {summed_loss(tokens, targets), at::sum(at::ne(targets, kNoTarget)).item<int64_t>()};
}

at::Tensor GptImpl::summed_loss(const at::Tensor& tokens, const at::Tensor& targets) {
  at::Tensor x = hidden(tokens).flatten(0, 1), wanted = targets.reshape({-1});
  if (execution.kernels == Kernels::kFused && can_fuse_head(x)) return fused_head_loss(x, embed->weight, wanted, kNoTarget);
  // In fp32 also under autocast, as the fused one.
  at::Tensor logits = at::linear(x, embed->weight).to(at::kFloat);
  return at::cross_entropy_loss(logits, wanted, {}, at::Reduction::Sum, kNoTarget);
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

}  // namespace phalanx::engine::model
