// config.json of Hugging Face's decoders: Llama, Qwen 2 and 2.5, Qwen 3, Mistral, Gemma 1 to 3, Phi-3. Both styles are read: rope_theta,
// rope_scaling and torch_dtype (transformers 4), and rope_parameters and dtype (5).
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
  enum class Kind { kDefault, kLinear, kDynamic, kLlama3, kYarn, kLongRope };
  Kind kind = Kind::kDefault;
  double theta = 10000;
  double factor = 1;
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;              // yarn
  std::optional<double> attention_factor;            // yarn, longrope: what sines and cosines are multiplied with; none: by the factor
  std::vector<double> short_factors, long_factors;   // longrope: one for each pair of dimensions
  int64_t original_positions = 0;                    // the context of the first training
};

enum class Activation { kSilu, kGeluTanh };

struct DecoderConfig {
  std::string model_type;  // "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3"
  int64_t vocabulary = 0, hidden = 0, intermediate = 0, layers = 0;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t positions = 0;
  double norm_epsilon = 1e-6;
  Rope rope;
  std::optional<Rope> window_rope;  // of layers with a window; none: the same
  int64_t rotary_dim = 0;           // columns of a head that turn, the first ones
  Activation activation = Activation::kSilu;
  double attention_scale = 0;  // of scores
  double score_cap = 0;        // scores become cap · tanh(score / cap); 0: they stay
  double logit_cap = 0;        // the same of logits
  double embedding_scale = 1;  // of embedded tokens
  bool unit_norms = false;     // norms multiply with 1 + weight
  bool branch_norms = false;   // what attention and MLP give is normalised too (pre_feedforward_layernorm, post_feedforward_layernorm)
  bool packed = false;         // qkv_proj and gate_up_proj instead of three and two projections
  bool qkv_bias = false, out_bias = false, mlp_bias = false;
  bool head_norms = false;       // q_norm and k_norm
  std::optional<bool> tied;      // the head is the embedding; none: config.json does not say, and the family has no default
  std::vector<int64_t> windows;  // per layer: how many positions it sees, 0 for all before it
};

// Error kConfig: not such a file, a size out of range, or a family or part that is not supported, by name.
base::Result<DecoderConfig> parse_decoder_config(std::string_view json);

// One inverse frequency for each pair of dimensions that turns, computed in fp32 as transformers does (modeling_rope_utils.py). `length`:
// tokens of the longest sequence at hand, which dynamic and longrope depend on.
std::vector<float> inverse_frequencies(const DecoderConfig& config, const Rope& rope, int64_t length);
// What sines and cosines are multiplied with: 1 but for yarn and longrope.
double rope_scale(const DecoderConfig& config, const Rope& rope);

}  // namespace phalanx::tune
