// The parts that today's decoders are made of, under Hugging Face's names, so that the parameters' names are those in the files.
// The arithmetic of transformers' modules in eager mode: on CPU in one pass per layer where there is one (engine/model/fused.h), else by
// at:: operators in their order. A batch is rows of tokens, [tokens, width]: its sequences lie end to end, none is padded.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/model/device_attention.h"
#include "engine/model/layers.h"
#include "tune/decoder/decoder_config.h"

namespace phalanx::engine::tuning {

// A linear map with, if it was given one, an adapter: y = W x + b + scale · B (A dropout(x)).
struct ProjectionImpl : torch::nn::Module {
  ProjectionImpl(int64_t in, int64_t out, bool with_bias);
  at::Tensor forward(const at::Tensor& x);
  bool drops() const { return adapted() && dropout > 0 && is_training(); }
  // Adds the parameters lora_A.weight [rank, in] and lora_B.weight [out, rank], not initialised.
  void add_adapter(int64_t rank, double scale, double dropout);
  void drop_adapter();
  bool adapted() const { return lora_a.defined() && !bypassed; }
  at::Tensor adapter_product();  // scale · B · A, fp32 [out, in]

  at::Tensor weight;  // [out, in]
  at::Tensor bias;    // [out]; undefined without
  at::Tensor lora_a, lora_b;
  double scale = 0;
  double dropout = 0;
  bool bypassed = false;  // as if there were no adapter
};
TORCH_MODULE(Projection);

// Each projection of the same x.
std::vector<at::Tensor> project(const at::Tensor& x, const std::vector<Projection>& projections);

// x / sqrt(mean(x²) + epsilon) in fp32, rounded to x's type, then times the weight. Gemma: times 1 + weight, in fp32, then rounded.
struct RmsNormImpl : torch::nn::Module {
  RmsNormImpl(int64_t width, double epsilon, bool unit = false);
  at::Tensor forward(const at::Tensor& x);
  at::Tensor weight;
  double epsilon;
  double offset;  // added to the weight: 1 in Gemma
  model::Kernels kernels = model::Kernels::kFused;
};
TORCH_MODULE(RmsNorm);

// What every layer needs of the positions of a batch.
struct Angles {
  at::Tensor cos, sin;  // [longest sequence, rotary_dim / 2], from the first token's position on; or [rows, …], of each row its own
};
struct Places {
  std::vector<int64_t> starts;              // sequence i is rows starts[i] to starts[i + 1]; the last is the number of rows
  int64_t first = 0;                        // position of each sequence's first token: as many are in the cache
  Angles all, windowed;                     // of layers without and with a window
  std::optional<model::Padding> padding{};  // where attention goes by libtorch's operator; then angles are of each row its own
  const Angles& of(int64_t window) const { return window > 0 ? windowed : all; }
};

// Keys and values of the tokens so far of one sequence, of one layer: [kv heads, time, head_dim].
struct KeyValues {
  at::Tensor keys, values;
};

struct GroupedAttentionImpl : torch::nn::Module {
  GroupedAttentionImpl(const tune::DecoderConfig& config, int64_t window);
  // x [tokens, hidden]. `cache`: null, or what is seen besides x, which is one sequence then; x's are added to it.
  at::Tensor forward(const at::Tensor& x, const Places& places, KeyValues* cache);
  int64_t heads, kv_heads, head_dim;
  int64_t window;     // 0: none
  double scale, cap;  // of scores; cap 0: none
  Projection q_proj{nullptr}, k_proj{nullptr}, v_proj{nullptr}, o_proj{nullptr};
  Projection qkv_proj{nullptr};  // instead of the first three
  RmsNorm q_norm{nullptr}, k_norm{nullptr};
  model::Kernels kernels = model::Kernels::kFused;

 private:
  std::vector<at::Tensor> queries_keys_values(const at::Tensor& x);
  // Of the sequence whose first row is `row`.
  at::Tensor plain(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const Places& places, int64_t row,
                   KeyValues* cache) const;
};
TORCH_MODULE(GroupedAttention);

struct GatedMlpImpl : torch::nn::Module {
  explicit GatedMlpImpl(const tune::DecoderConfig& config);
  at::Tensor forward(const at::Tensor& x);  // down(act(gate x) · up x)
  Projection gate_proj{nullptr}, up_proj{nullptr}, down_proj{nullptr};
  Projection gate_up_proj{nullptr};  // instead of the first two
  tune::Activation activation;
  int64_t width;  // of gate and up
  model::Kernels kernels = model::Kernels::kFused;
};
TORCH_MODULE(GatedMlp);

struct DecoderLayerImpl : torch::nn::Module {
  DecoderLayerImpl(const tune::DecoderConfig& config, int64_t window);
  at::Tensor forward(const at::Tensor& x, const Places& places, KeyValues* cache);
  RmsNorm input_layernorm{nullptr};
  GroupedAttention self_attn{nullptr};
  RmsNorm post_attention_layernorm{nullptr};  // in front of the MLP, or with branch norms of what attention gives
  GatedMlp mlp{nullptr};
  RmsNorm pre_feedforward_layernorm{nullptr}, post_feedforward_layernorm{nullptr};  // with branch norms
  std::vector<RmsNorm> norms();
};
TORCH_MODULE(DecoderLayer);

}  // namespace phalanx::engine::tuning
