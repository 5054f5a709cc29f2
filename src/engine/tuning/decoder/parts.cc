#include "engine/tuning/decoder/parts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

namespace phalanx::engine::tuning {
namespace {

// [-second half, first half] of the last dimension.
at::Tensor turned(const at::Tensor& x) {
  const int64_t half = x.size(-1) / 2;
  return at::cat({-x.narrow(-1, half, half), x.narrow(-1, 0, half)}, -1);
}

at::Tensor rotated(const at::Tensor& x, const Places& places) { return x * places.cos + turned(x) * places.sin; }

// Every kv head once for each query head that uses it.
at::Tensor repeated(const at::Tensor& x, int64_t times) {
  if (times == 1) return x;
  return x.unsqueeze(2).expand({x.size(0), x.size(1), times, x.size(2), x.size(3)}).reshape({x.size(0), -1, x.size(2), x.size(3)});
}

// 0 where the query at first + i sees key j, else -inf. Position p sees p - window < j <= p.
at::Tensor mask_of(int64_t time, const Places& places, int64_t window, const at::TensorOptions& options) {
  at::Tensor query = at::arange(places.first, places.first + time, options.dtype(at::kLong)).unsqueeze(1);
  at::Tensor key = at::arange(places.first + time, options.dtype(at::kLong)).unsqueeze(0);
  at::Tensor hidden = key > query;
  if (window > 0) hidden = hidden | (key <= query - window);
  return at::zeros({time, places.first + time}, options.dtype(at::kFloat)).masked_fill_(hidden, -std::numeric_limits<float>::infinity());
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
  at::Tensor y = at::linear(x, weight, bias.defined() ? c10::optional<at::Tensor>(bias) : c10::nullopt);
  if (!adapted()) return y;
  at::Tensor input = dropout > 0 ? at::dropout(x, dropout, is_training()) : x;
  return y + at::linear(at::linear(input, lora_a), lora_b) * scale;
}

RmsNormImpl::RmsNormImpl(int64_t width, double norm_epsilon)
    : weight(register_parameter("weight", at::ones({width}))), epsilon(norm_epsilon) {}

at::Tensor RmsNormImpl::forward(const at::Tensor& x) {
  at::Tensor wide = x.to(at::kFloat);
  return weight * (wide * at::rsqrt(wide.pow(2).mean(-1, true) + epsilon)).to(x.scalar_type());
}

GroupedAttentionImpl::GroupedAttentionImpl(const tune::DecoderConfig& config, int64_t layer_window)
    : heads(config.heads),
      kv_heads(config.kv_heads),
      head_dim(config.head_dim),
      window(layer_window),
      q_proj(register_module("q_proj", Projection(config.hidden, config.heads * config.head_dim, config.qkv_bias))),
      k_proj(register_module("k_proj", Projection(config.hidden, config.kv_heads * config.head_dim, config.qkv_bias))),
      v_proj(register_module("v_proj", Projection(config.hidden, config.kv_heads * config.head_dim, config.qkv_bias))),
      o_proj(register_module("o_proj", Projection(config.heads * config.head_dim, config.hidden, config.out_bias))) {
  if (!config.head_norms) return;
  q_norm = register_module("q_norm", RmsNorm(config.head_dim, config.norm_epsilon));
  k_norm = register_module("k_norm", RmsNorm(config.head_dim, config.norm_epsilon));
}

at::Tensor GroupedAttentionImpl::forward(const at::Tensor& x, const Places& places, KeyValues* cache) {
  const int64_t batch = x.size(0), time = x.size(1);
  at::Tensor query = q_proj(x).view({batch, time, heads, head_dim}), key = k_proj(x).view({batch, time, kv_heads, head_dim});
  at::Tensor value = v_proj(x).view({batch, time, kv_heads, head_dim}).transpose(1, 2);
  if (q_norm) {
    query = q_norm(query);
    key = k_norm(key);
  }
  query = rotated(query.transpose(1, 2), places);
  key = rotated(key.transpose(1, 2), places);
  if (cache) {
    if (cache->keys.defined()) {
      key = at::cat({cache->keys, key}, 2);
      value = at::cat({cache->values, value}, 2);
    }
    *cache = {key, value};
  }
  at::Tensor scores = at::matmul(query, repeated(key, heads / kv_heads).transpose(2, 3)) / std::sqrt(static_cast<double>(head_dim));
  scores = scores.to(at::kFloat) + mask_of(time, places, window, x.options());
  at::Tensor seen = at::matmul(at::softmax(scores, -1).to(query.scalar_type()), repeated(value, heads / kv_heads));
  return o_proj(seen.transpose(1, 2).reshape({batch, time, heads * head_dim}));
}

GatedMlpImpl::GatedMlpImpl(const tune::DecoderConfig& config)
    : gate_proj(register_module("gate_proj", Projection(config.hidden, config.intermediate, config.mlp_bias))),
      up_proj(register_module("up_proj", Projection(config.hidden, config.intermediate, config.mlp_bias))),
      down_proj(register_module("down_proj", Projection(config.intermediate, config.hidden, config.mlp_bias))) {}

at::Tensor GatedMlpImpl::forward(const at::Tensor& x) { return down_proj(at::silu(gate_proj(x)) * up_proj(x)); }

DecoderLayerImpl::DecoderLayerImpl(const tune::DecoderConfig& config, int64_t window)
    : input_layernorm(register_module("input_layernorm", RmsNorm(config.hidden, config.norm_epsilon))),
      self_attn(register_module("self_attn", GroupedAttention(config, window))),
      post_attention_layernorm(register_module("post_attention_layernorm", RmsNorm(config.hidden, config.norm_epsilon))),
      mlp(register_module("mlp", GatedMlp(config))) {}

at::Tensor DecoderLayerImpl::forward(const at::Tensor& x, const Places& places, KeyValues* cache) {
  at::Tensor middle = x + self_attn(input_layernorm(x), places, cache);
  return middle + mlp(post_attention_layernorm(middle));
}

}  // namespace phalanx::engine::tuning
