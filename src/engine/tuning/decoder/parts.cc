#include "engine/tuning/decoder/parts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/split_with_sizes.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/model/fused.h"
#include "engine/tuning/decoder/adapted_maps.h"

namespace phalanx::engine::tuning {
namespace {

using model::Kernels;

// x [heads, time, head_dim], or rows first: column j turns with j + half.
at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const int64_t half = cos.size(-1);
  const at::Tensor first = x.narrow(-1, 0, half), second = x.narrow(-1, half, half);
  const at::Tensor c = cos.to(x.scalar_type()), s = sin.to(x.scalar_type());
  return at::cat({first * c - second * s, second * c + first * s, x.narrow(-1, 2 * half, x.size(-1) - 2 * half)}, -1);
}

// One projection's columns as several tensors, each of which may be overwritten.
std::vector<at::Tensor> cut(const at::Tensor& x, at::IntArrayRef widths) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& part : x.split_with_sizes(widths, 1)) out.push_back(part.contiguous());
  return out;
}

// 0 where the query at first + i sees key j, else -inf. Position p sees p - window < j <= p.
at::Tensor mask_of(int64_t time, int64_t first, int64_t window, const at::TensorOptions& options) {
  at::Tensor query = at::arange(first, first + time, options.dtype(at::kLong)).unsqueeze(1);
  at::Tensor key = at::arange(first + time, options.dtype(at::kLong)).unsqueeze(0);
  at::Tensor hidden = key > query;
  if (window > 0) hidden = hidden | (key <= query - window);
  return at::zeros({time, first + time}, options.dtype(at::kFloat)).masked_fill_(hidden, -std::numeric_limits<float>::infinity());
}

AdaptedMap map_of(const Projection& projection) {
  return {projection->weight, projection->bias, projection->lora_a, projection->lora_b, projection->scale};
}

}  // namespace

ProjectionImpl::ProjectionImpl(int64_t in, int64_t out, bool with_bias) : weight(register_parameter("weight", at::empty({out, in}))) {
  if (with_bias) bias = register_parameter("bias", at::empty({out}));
}

void ProjectionImpl::add_adapter(int64_t rank, double adapter_scale, double adapter_dropout) {
  auto part = [&](const char* name, int64_t rows, int64_t columns) {
    auto holder = std::make_shared<torch::nn::Module>();
    at::Tensor value = holder->register_parameter("weight", at::empty({rows, columns}));
    register_module(name, holder);
    return value;
  };
  lora_a = part("lora_A", rank, weight.size(1));
  lora_b = part("lora_B", weight.size(0), rank);
  scale = adapter_scale;
  dropout = adapter_dropout;
}

void ProjectionImpl::drop_adapter() {
  unregister_module("lora_A");
  unregister_module("lora_B");
  lora_a = lora_b = at::Tensor();
}

at::Tensor ProjectionImpl::adapter_product() { return at::matmul(lora_b.to(at::kFloat), lora_a.to(at::kFloat)) * scale; }

at::Tensor ProjectionImpl::forward(const at::Tensor& x) {
  if (adapted() && !drops()) return adapted_maps(x, {{weight, bias, lora_a, lora_b, scale}}).front();
  at::Tensor y = at::linear(x, weight, bias.defined() ? c10::optional<at::Tensor>(bias) : c10::nullopt);
  return drops() ? y + at::linear(at::linear(at::dropout(x, dropout, true), lora_a), lora_b) * scale : y;
}

std::vector<at::Tensor> project(const at::Tensor& x, const std::vector<Projection>& projections) {
  const auto alike = [](const Projection& one) { return one->adapted() && !one->drops(); };
  std::vector<at::Tensor> out;
  if (std::all_of(projections.begin(), projections.end(), alike)) {
    std::vector<AdaptedMap> maps;
    for (const Projection& one : projections) maps.push_back(map_of(one));
    return adapted_maps(x, maps);
  }
  for (Projection one : projections) out.push_back(one(x));
  return out;
}

RmsNormImpl::RmsNormImpl(int64_t width, double norm_epsilon, bool unit)
    : weight(register_parameter("weight", at::ones({width}))), epsilon(norm_epsilon), offset(unit ? 1 : 0) {}

at::Tensor RmsNormImpl::forward(const at::Tensor& x) {
  const bool wide_both = x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat;
  if (kernels == Kernels::kFused && wide_both && model::can_fuse(x)) return model::fused_rms_norm(x, weight, epsilon, offset);
  at::Tensor wide = x.to(at::kFloat);
  if (offset != 0) return (wide * at::rsqrt(wide.pow(2).mean(-1, true) + epsilon) * (weight.to(at::kFloat) + offset)).to(x.scalar_type());
  return weight * (wide * at::rsqrt(wide.pow(2).mean(-1, true) + epsilon)).to(x.scalar_type());
}

GroupedAttentionImpl::GroupedAttentionImpl(const tune::DecoderConfig& config, int64_t layer_window)
    : heads(config.heads),
      kv_heads(config.kv_heads),
      head_dim(config.head_dim),
      window(layer_window),
      scale(config.attention_scale),
      cap(config.score_cap) {
  const auto add = [&](const char* name, int64_t columns) {
    return register_module(name, Projection(config.hidden, columns * config.head_dim, config.qkv_bias));
  };
  if (config.packed) {
    qkv_proj = add("qkv_proj", heads + 2 * kv_heads);
  } else {
    q_proj = add("q_proj", heads);
    k_proj = add("k_proj", kv_heads);
    v_proj = add("v_proj", kv_heads);
  }
  o_proj = register_module("o_proj", Projection(heads * head_dim, config.hidden, config.out_bias));
  if (!config.head_norms) return;
  q_norm = register_module("q_norm", RmsNorm(head_dim, config.norm_epsilon, config.unit_norms));
  k_norm = register_module("k_norm", RmsNorm(head_dim, config.norm_epsilon, config.unit_norms));
}

std::vector<at::Tensor> GroupedAttentionImpl::queries_keys_values(const at::Tensor& x) {
  if (!qkv_proj) return project(x, {q_proj, k_proj, v_proj});
  return cut(qkv_proj(x), {heads * head_dim, kv_heads * head_dim, kv_heads * head_dim});
}

at::Tensor GroupedAttentionImpl::forward(const at::Tensor& x, const Places& places, KeyValues* cache) {
  const int64_t tokens = x.size(0);
  const std::vector<at::Tensor> parts = queries_keys_values(x);
  at::Tensor query = parts[0], key = parts[1];
  const at::Tensor& value = parts[2];
  if (q_norm) {
    query = q_norm(query.view({tokens, heads, head_dim})).view({tokens, -1});
    key = k_norm(key.view({tokens, kv_heads, head_dim})).view({tokens, -1});
  }
  const bool same_type = query.scalar_type() == value.scalar_type();
  if (kernels == Kernels::kFused && !cache && same_type && model::can_fuse(query)) {
    const Angles& angles = places.of(window);
    const model::AttentionShape shape{places.starts, heads, kv_heads, head_dim, window, angles.cos, angles.sin, scale, cap};
    return o_proj(model::fused_grouped_attention(query, key, value, shape));
  }
  if (kernels == Kernels::kFused && places.padding && cap == 0 && (window == 0 || places.padding->longest() <= window)) {
    const Angles& angles = places.of(window);
    const at::Tensor cos = angles.cos.unsqueeze(1), sin = angles.sin.unsqueeze(1);
    const auto by_head = [&](const at::Tensor& columns) { return columns.view({tokens, -1, head_dim}); };
    return o_proj(model::operator_grouped_attention(*places.padding, rotated(by_head(query), cos, sin), rotated(by_head(key), cos, sin),
                                                    by_head(value), scale));
  }
  std::vector<at::Tensor> seen;
  for (size_t i = 0; i + 1 < places.starts.size(); ++i) {
    const int64_t first = places.starts[i], count = places.starts[i + 1] - first;
    seen.push_back(plain(query.narrow(0, first, count), key.narrow(0, first, count), value.narrow(0, first, count), places, first, cache));
  }
  return o_proj(at::cat(seen));
}

// Of one sequence: [time, columns of all heads] each.
at::Tensor GroupedAttentionImpl::plain(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const Places& places,
                                       int64_t row, KeyValues* cache) const {
  const int64_t time = query.size(0), group = heads / kv_heads;
  const Angles& angles = places.of(window);
  const int64_t from = angles.cos.size(0) == places.starts.back() ? row : 0;
  const at::Tensor cos = angles.cos.narrow(0, from, time), sin = angles.sin.narrow(0, from, time);
  const auto by_head = [&](const at::Tensor& x) { return x.unflatten(1, {-1, head_dim}).transpose(0, 1); };
  at::Tensor q = rotated(by_head(query), cos, sin), k = rotated(by_head(key), cos, sin), v = by_head(value);
  if (cache) {
    if (cache->keys.defined()) {
      k = at::cat({cache->keys, k}, 1);
      v = at::cat({cache->values, v}, 1);
    }
    *cache = {k, v};
  }
  // Every kv head once for each query head that uses it.
  k = k.repeat_interleave(group, 0);
  v = v.repeat_interleave(group, 0);
  at::Tensor scores = at::matmul(q, k.transpose(1, 2)) * scale;
  if (cap > 0) scores = at::tanh(scores / cap) * cap;
  scores = scores.to(at::kFloat) + mask_of(time, places.first, window, query.options());
  return at::matmul(at::softmax(scores, -1).to(q.scalar_type()), v).transpose(0, 1).reshape({time, heads * head_dim});
}

GatedMlpImpl::GatedMlpImpl(const tune::DecoderConfig& config) : activation(config.activation), width(config.intermediate) {
  const auto add = [&](const char* name, int64_t in, int64_t out) { return register_module(name, Projection(in, out, config.mlp_bias)); };
  if (config.packed) {
    gate_up_proj = add("gate_up_proj", config.hidden, 2 * config.intermediate);
  } else {
    gate_proj = add("gate_proj", config.hidden, config.intermediate);
    up_proj = add("up_proj", config.hidden, config.intermediate);
  }
  down_proj = add("down_proj", config.intermediate, config.hidden);
}

at::Tensor GatedMlpImpl::forward(const at::Tensor& x) {
  const std::vector<at::Tensor> parts = gate_up_proj ? cut(gate_up_proj(x), {width, width}) : project(x, {gate_proj, up_proj});
  const at::Tensor &gate = parts[0], &up = parts[1];
  const bool silu = activation == tune::Activation::kSilu;
  if (kernels == Kernels::kFused && model::can_fuse(gate))
    return down_proj(model::fused_gated(gate, up, silu ? model::Gate::kSilu : model::Gate::kGeluTanh));
  return down_proj((silu ? at::silu(gate) : at::gelu(gate, "tanh")) * up);
}

DecoderLayerImpl::DecoderLayerImpl(const tune::DecoderConfig& config, int64_t window) {
  const auto add = [&](const char* name) { return register_module(name, RmsNorm(config.hidden, config.norm_epsilon, config.unit_norms)); };
  input_layernorm = add("input_layernorm");
  self_attn = register_module("self_attn", GroupedAttention(config, window));
  post_attention_layernorm = add("post_attention_layernorm");
  mlp = register_module("mlp", GatedMlp(config));
  if (!config.branch_norms) return;
  pre_feedforward_layernorm = add("pre_feedforward_layernorm");
  post_feedforward_layernorm = add("post_feedforward_layernorm");
}

std::vector<RmsNorm> DecoderLayerImpl::norms() {
  std::vector<RmsNorm> out{input_layernorm, post_attention_layernorm};
  if (pre_feedforward_layernorm) out.insert(out.end(), {pre_feedforward_layernorm, post_feedforward_layernorm});
  if (self_attn->q_norm) out.insert(out.end(), {self_attn->q_norm, self_attn->k_norm});
  return out;
}

at::Tensor DecoderLayerImpl::forward(const at::Tensor& x, const Places& places, KeyValues* cache) {
  if (pre_feedforward_layernorm) {
    at::Tensor middle = x + post_attention_layernorm(self_attn(input_layernorm(x), places, cache));
    return middle + post_feedforward_layernorm(mlp(pre_feedforward_layernorm(middle)));
  }
  at::Tensor middle = x + self_attn(input_layernorm(x), places, cache);
  return middle + mlp(post_attention_layernorm(middle));
}

}  // namespace phalanx::engine::tuning
