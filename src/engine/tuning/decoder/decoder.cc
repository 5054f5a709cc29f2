#include "engine/tuning/decoder/decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "engine/model/fused.h"
#include "engine/require.h"

namespace phalanx::engine::tuning {

DecoderImpl::DecoderImpl(const tune::DecoderConfig& decoder_config, bool head_is_tied) : config(decoder_config), tied(head_is_tied) {
  auto body = register_module("model", std::make_shared<torch::nn::Module>());
  embed_tokens = body->register_module("embed_tokens", model::Embedding(config.vocabulary, config.hidden));
  auto list = body->register_module("layers", std::make_shared<torch::nn::Module>());
  for (int64_t i = 0; i < config.layers; ++i)
    layers.push_back(list->register_module(std::to_string(i), DecoderLayer(config, config.windows[static_cast<size_t>(i)])));
  norm = body->register_module("norm", RmsNorm(config.hidden, config.norm_epsilon));
  if (!tied) lm_head = register_module("lm_head", Projection(config.hidden, config.vocabulary, false));
  frequencies_ = at::tensor(tune::inverse_frequencies(config));
}

std::vector<std::pair<std::string, Projection>> DecoderImpl::projections() {
  std::vector<std::pair<std::string, Projection>> out;
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string layer = "model.layers." + std::to_string(i);
    GroupedAttention& attention = layers[i]->self_attn;
    GatedMlp& mlp = layers[i]->mlp;
    out.insert(out.end(), {{layer + ".self_attn.q_proj", attention->q_proj},
                           {layer + ".self_attn.k_proj", attention->k_proj},
                           {layer + ".self_attn.v_proj", attention->v_proj},
                           {layer + ".self_attn.o_proj", attention->o_proj},
                           {layer + ".mlp.gate_proj", mlp->gate_proj},
                           {layer + ".mlp.up_proj", mlp->up_proj},
                           {layer + ".mlp.down_proj", mlp->down_proj}});
  }
  return out;
}

void DecoderImpl::set_kernels(model::Kernels kernels) {
  kernels_ = norm->kernels = kernels;
  for (DecoderLayer& layer : layers) {
    layer->input_layernorm->kernels = layer->post_attention_layernorm->kernels = kernels;
    layer->self_attn->kernels = layer->mlp->kernels = kernels;
    if (layer->self_attn->q_norm) layer->self_attn->q_norm->kernels = layer->self_attn->k_norm->kernels = kernels;
  }
}

at::Tensor DecoderImpl::hidden(const Sequences& rows, DecoderCache* cache) {
  require(!cache || rows.starts.size() == 2, "a cache is of one sequence, not of {}", rows.starts.size() - 1);
  int64_t longest = 0;
  for (size_t i = 1; i < rows.starts.size(); ++i) longest = std::max(longest, rows.starts[i] - rows.starts[i - 1]);
  const int64_t first = cache ? cache->length : 0;
  at::Tensor x = embed_tokens(rows.tokens);
  at::Tensor angles = at::outer(at::arange(first, first + longest, frequencies_.options()), frequencies_).to(x.device());
  const double scale = tune::rope_scale(config.rope);
  const Places places{rows.starts, angles.cos() * scale, angles.sin() * scale, first};
  if (cache) cache->layers.resize(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) x = layers[i](x, places, cache ? &cache->layers[i] : nullptr);
  if (cache) cache->length += longest;
  return norm(x);
}

at::Tensor DecoderImpl::forward(const at::Tensor& tokens, DecoderCache* cache) {
  const int64_t batch = tokens.size(0), time = tokens.size(1);
  Sequences rows{tokens.reshape({-1}), {}};
  for (int64_t i = 0; i <= batch; ++i) rows.starts.push_back(i * time);
  return at::linear(hidden(rows, cache), head()).view({batch, time, -1});
}

model::SummedLoss DecoderImpl::loss(const Sequences& rows, const at::Tensor& labels) {
  // The label of a token is its successor's; the last of a sequence has none.
  at::Tensor wanted = at::roll(labels, -1);
  for (size_t i = 1; i < rows.starts.size(); ++i) wanted[rows.starts[i] - 1] = model::GptImpl::kNoTarget;
  // The head is applied only where there is something to learn: a prompt's logits would cost as much as an answer's.
  at::Tensor places = at::nonzero(at::ne(wanted, model::GptImpl::kNoTarget)).squeeze(1);
  const int64_t count = places.numel();
  // Nothing to learn: one token, times 0, so that every rank uses the same parameters, which may be sharded.
  if (count == 0) places = at::zeros({1}, places.options());
  at::Tensor x = at::index_select(hidden(rows, nullptr), 0, places);
  wanted = count == 0 ? at::zeros_like(places) : at::index_select(wanted, 0, places);
  at::Tensor sum;
  if (kernels_ == model::Kernels::kFused && model::can_fuse(x)) {
    sum = model::fused_head_loss(x, head(), wanted, model::GptImpl::kNoTarget);
  } else {
    at::Tensor logits = at::linear(x, head()).to(at::kFloat);
    sum = at::cross_entropy_loss(logits, wanted, {}, at::Reduction::Sum, model::GptImpl::kNoTarget);
  }
  return {count == 0 ? sum * 0 : sum, count};
}

}  // namespace phalanx::engine::tuning
