// config.json of Hugging Face's decoders: Llama, Qwen 2 and 2.5, Qwen 3, Mistral. Both styles are read: rope_theta, rope_scaling and
// torch_dtype (transformers 4), and rope_parameters and dtype (5).
// Source: huggingface/transformers v4.51.3, src/transformers/models/*/configuration_*.py and modeling_*.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::tune {

// How positions turn queries and keys.
struct Rope {
  enum class Kind { kDefault, kLinear, kLlama3, kYarn };
  Kind kind = Kind::kDefault;
  double theta = 10000;
  double factor = 1;
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;              // yarn
  std::optional<double> attention_factor;            // yarn: what sines and cosines are multiplied with; none: 0.1 ln(factor) + 1
  int64_t original_positions = 0;                    // the context of the first training
};

struct DecoderConfig {
  std::string model_type;  // "llama", "mistral", "qwen2", "qwen3"
  int64_t vocabulary = 0, hidden = 0, intermediate = 0, layers = 0;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t positions = 0;
  double norm_epsilon = 1e-6;
  Rope rope;
  bool qkv_bias = false, out_bias = false, mlp_bias = false;
  bool head_norms = false;       // q_norm and k_norm
  std::optional<bool> tied;      // the head is the embedding; none: config.json does not say
  std::vector<int64_t> windows;  // per layer: how many positions it sees, 0 for all before it
};

// Error kConfig: not such a file, a size out of range, or a family or part that is not supported, by name.
base::Result<DecoderConfig> parse_decoder_config(std::string_view json);

// One inverse frequency for each pair of dimensions of a head, computed in fp32 as transformers does (modeling_rope_utils.py).
std::vector<float> inverse_frequencies(const DecoderConfig& config);
// What sines and cosines are multiplied with: 1 but for yarn.
double rope_scale(const Rope& rope);

}  // namespace phalanx::tune
