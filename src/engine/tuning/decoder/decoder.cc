#include "engine/tuning/decoder/decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "engine/model/fused.h"

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

at::Tensor DecoderImpl::hidden(const at::Tensor& tokens, DecoderCache* cache) {
  const int64_t time = tokens.size(1), first = cache ? cache->length : 0;
  at::Tensor x = embed_tokens(tokens);
  at::Tensor angles = at::outer(at::arange(first, first + time, frequencies_.options()), frequencies_).to(x.device());
  angles = at::cat({angles, angles}, -1);
  const double scale = tune::rope_scale(config.rope);
  const Places places{(angles.cos() * scale).to(x.scalar_type()), (angles.sin() * scale).to(x.scalar_type()), first};
  if (cache) cache->layers.resize(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) x = layers[i](x, places, cache ? &cache->layers[i] : nullptr);
  if (cache) cache->length += time;
  return norm(x);
}

at::Tensor DecoderImpl::forward(const at::Tensor& tokens, DecoderCache* cache) { return at::linear(hidden(tokens, cache), head()); }

model::SummedLoss DecoderImpl::loss(const at::Tensor& tokens, const at::Tensor& labels) {
  const int64_t time = tokens.size(1);
  at::Tensor wanted = labels.narrow(1, 1, time - 1).reshape({-1});
  // The head is applied only where there is something to learn: a prompt's logits would cost as much as an answer's.
  at::Tensor rows = at::nonzero(at::ne(wanted, model::GptImpl::kNoTarget)).squeeze(1);
  const int64_t count = rows.numel();
  // Nothing to learn: one token, times 0, so that every rank uses the same parameters, which may be sharded.
  if (count == 0) rows = at::zeros({1}, rows.options());
  at::Tensor x = at::index_select(hidden(tokens, nullptr).narrow(1, 0, time - 1).flatten(0, 1), 0, rows);
  wanted = count == 0 ? at::zeros_like(rows) : at::index_select(wanted, 0, rows);
  at::Tensor sum;
  if (model::can_fuse(x)) {
    sum = model::fused_head_loss(x, head(), wanted, model::GptImpl::kNoTarget);
  } else {
    at::Tensor logits = at::linear(x, head()).to(at::kFloat);
    sum = at::cross_entropy_loss(logits, wanted, {}, at::Reduction::Sum, model::GptImpl::kNoTarget);
  }
  return {count == 0 ? sum * 0 : sum, count};
}

}  // namespace phalanx::engine::tuning
