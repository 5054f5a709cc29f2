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
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "engine/model/fused.h"
#include "engine/require.h"
#include "engine/to_device.h"

namespace phalanx::engine::tuning {

DecoderImpl::DecoderImpl(const tune::DecoderConfig& decoder_config, bool head_is_tied) : config(decoder_config), tied(head_is_tied) {
  auto body = register_module("model", std::make_shared<torch::nn::Module>());
  embed_tokens = body->register_module("embed_tokens", model::Embedding(config.vocabulary, config.hidden));
  auto list = body->register_module("layers", std::make_shared<torch::nn::Module>());
  for (int64_t i = 0; i < config.layers; ++i)
    layers.push_back(list->register_module(std::to_string(i), DecoderLayer(config, config.windows[static_cast<size_t>(i)])));
  norm = body->register_module("norm", RmsNorm(config.hidden, config.norm_epsilon, config.unit_norms));
  if (!tied) lm_head = register_module("lm_head", Projection(config.hidden, config.vocabulary, false));
}

std::vector<std::pair<std::string, Projection>> DecoderImpl::projections() {
  std::vector<std::pair<std::string, Projection>> out;
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string layer = "model.layers." + std::to_string(i);
    GroupedAttention& attention = layers[i]->self_attn;
    GatedMlp& mlp = layers[i]->mlp;
    const auto add = [&](const char* name, const Projection& projection) {
      if (projection) out.emplace_back(layer + name, projection);
    };
    add(".self_attn.q_proj", attention->q_proj);
    add(".self_attn.k_proj", attention->k_proj);
    add(".self_attn.v_proj", attention->v_proj);
    add(".self_attn.qkv_proj", attention->qkv_proj);
    add(".self_attn.o_proj", attention->o_proj);
    add(".mlp.gate_proj", mlp->gate_proj);
    add(".mlp.up_proj", mlp->up_proj);
    add(".mlp.gate_up_proj", mlp->gate_up_proj);
    add(".mlp.down_proj", mlp->down_proj);
  }
  return out;
}

void DecoderImpl::set_kernels(model::Kernels kernels) {
  kernels_ = norm->kernels = kernels;
  for (DecoderLayer& layer : layers) {
    layer->self_attn->kernels = layer->mlp->kernels = kernels;
    for (RmsNorm one : layer->norms()) one->kernels = kernels;
  }
}

void DecoderImpl::bypass_adapters(bool bypass) {
  for (auto& [name, projection] : projections()) projection->bypassed = bypass;
}

namespace {

// Of each row its own angles instead of each position's.
void expand(Places* places) {
  std::vector<int64_t> position;
  for (size_t i = 1; i < places->starts.size(); ++i)
    for (int64_t row = places->starts[i - 1]; row < places->starts[i]; ++row) position.push_back(row - places->starts[i - 1]);
  const at::Tensor at = to_device(at::tensor(position, at::kLong), places->all.cos.device());
  for (Angles* angles : {&places->all, &places->windowed})
    *angles = {at::index_select(angles->cos, 0, at), at::index_select(angles->sin, 0, at)};
}

}  // namespace

at::Tensor DecoderImpl::hidden(const Sequences& rows, DecoderCache* cache) {
  require(!cache || rows.starts.size() == 2, "a cache is of one sequence, not of {}", rows.starts.size() - 1);
  int64_t longest = 0;
  for (size_t i = 1; i < rows.starts.size(); ++i) longest = std::max(longest, rows.starts[i] - rows.starts[i - 1]);
  const int64_t first = cache ? cache->length : 0;
  at::Tensor x = embed_tokens(to_device(rows.tokens, embed_tokens->weight.device())).to(at::kFloat);
  if (config.embedding_scale != 1) x = x * config.embedding_scale;
  const at::Tensor positions = rows.positions.empty() ? at::arange(first, first + longest, at::TensorOptions().dtype(at::kFloat))
                                                      : at::tensor(rows.positions).to(at::kFloat);
  const int64_t reach = rows.positions.empty() ? first + longest : *std::max_element(rows.positions.begin(), rows.positions.end()) + 1;
  const auto angles_of = [&](const tune::Rope& rope) {
    const at::Tensor frequencies = at::tensor(tune::inverse_frequencies(config, rope, reach));
    const at::Tensor angles = to_device(at::outer(positions, frequencies), x.device());
    const double scale = tune::rope_scale(config, rope);
    return Angles{angles.cos() * scale, angles.sin() * scale};
  };
  Places places{rows.starts, first, angles_of(config.rope), {}};
  places.windowed = config.window_rope ? angles_of(*config.window_rope) : places.all;
  if (!cache && kernels_ == model::Kernels::kFused && model::attends_by_operator(x)) {
    places.padding = model::padding_of(rows.starts, x.device());
    if (rows.positions.empty()) expand(&places);
  }
  if (cache) cache->layers.resize(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) x = layers[i](x, places, cache ? &cache->layers[i] : nullptr);
  if (cache) cache->length += longest;
  return norm(x);
}

at::Tensor DecoderImpl::forward(const at::Tensor& tokens, DecoderCache* cache) {
  const int64_t batch = tokens.size(0), time = tokens.size(1);
  Sequences rows{tokens.reshape({-1}), {}};
  for (int64_t i = 0; i <= batch; ++i) rows.starts.push_back(i * time);
  return capped(at::linear(hidden(rows, cache), head())).view({batch, time, -1});
}

at::Tensor DecoderImpl::capped(const at::Tensor& logits) const {
  return config.logit_cap > 0 ? at::tanh(logits / config.logit_cap) * config.logit_cap : logits;
}

namespace {

// The label of a token is its successor's; the last of a row has none.
at::Tensor successors(const Sequences& rows, const at::Tensor& labels) {
  at::Tensor out = at::roll(labels, -1);
  for (size_t i = 1; i < rows.rows().size(); ++i) out[rows.rows()[i] - 1] = model::GptImpl::kNoTarget;
  return out;
}

}  // namespace

at::Tensor DecoderImpl::summed_loss(const at::Tensor& x, const at::Tensor& wanted) {
  if (kernels_ == model::Kernels::kFused && model::can_fuse_head(x))
    return model::fused_head_loss(x, head(), wanted, model::GptImpl::kNoTarget, config.logit_cap);
  const at::Tensor logits = capped(at::linear(x, head())).to(at::kFloat);
  return at::cross_entropy_loss(logits, wanted, {}, at::Reduction::Sum, model::GptImpl::kNoTarget);
}

model::SummedLoss DecoderImpl::loss(const Sequences& rows, const at::Tensor& labels) {
  at::Tensor wanted = successors(rows, labels);
  // The head is applied only where there is something to learn: a prompt's logits would cost as much as an answer's.
  at::Tensor places = at::nonzero(at::ne(wanted, model::GptImpl::kNoTarget)).squeeze(1);
  const int64_t count = places.numel();
  // Nothing to learn: one token, times 0, so that every rank uses the same parameters, which may be sharded.
  if (count == 0) places = at::zeros({1}, places.options());
  const at::Device device = embed_tokens->weight.device();
  const at::Tensor x = at::index_select(hidden(rows, nullptr), 0, to_device(places, device));
  const at::Tensor targets = count == 0 ? at::zeros_like(places) : at::index_select(wanted, 0, places);
  const at::Tensor sum = summed_loss(x, to_device(targets, device));
  return {count == 0 ? sum * 0 : sum, count};
}

RowLogs DecoderImpl::log_probabilities(const Sequences& rows, const at::Tensor& labels) {
  const at::Tensor wanted = successors(rows, labels), x = hidden(rows, nullptr);
  const std::vector<int64_t>& starts = rows.rows();
  std::vector<at::Tensor> sums;
  RowLogs out;
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    const at::Tensor mine = wanted.narrow(0, starts[i], starts[i + 1] - starts[i]);
    at::Tensor places = at::nonzero(at::ne(mine, model::GptImpl::kNoTarget)).squeeze(1);
    out.counts.push_back(places.numel());
    if (places.numel() == 0) places = at::zeros({1}, places.options());
    const at::Tensor targets = out.counts.back() == 0 ? at::zeros_like(places) : at::index_select(mine, 0, places);
    const at::Tensor sum = summed_loss(at::index_select(x, 0, to_device(places + starts[i], x.device())), to_device(targets, x.device()));
    sums.push_back(out.counts.back() == 0 ? sum * 0 : -sum);
  }
  out.sums = at::stack(sums);
  return out;
}

}  // namespace phalanx::engine::tuning
