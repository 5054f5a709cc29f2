// The shape of a transformer, from the config.json that lies beside every Hugging Face model, and its parameters counted
// one tensor at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace phalanx::fit {

struct Model {
  std::string name;  // "llama", "qwen2", "qwen3", "mistral", "gpt2"; "parameters" when only a number is known
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t intermediate = 0;
  int64_t heads = 0;
  int64_t key_value_heads = 0;
  int64_t head_size = 0;
  int64_t vocabulary = 0;
  int64_t positions = 0;  // learned position embeddings (GPT-2), else the longest sequence
  bool tied = false;      // the output layer is the embedding
  // Counted:
  int64_t parameters = 0;
  int64_t largest_layer = 0;  // parameters of the largest single module (DeepSpeed's "largest layer")
  int64_t block = 0;          // parameters of one transformer block
  int64_t linear_widths = 0;  // inputs + outputs of every linear layer but the last: the parameters of a LoRA of rank 1 on all of them
  bool shape_known() const { return layers > 0; }
};

// Architectures: LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM, GPT2LMHeadModel (by model_type).
// Layouts and defaults as in transformers' configuration_*.py. Error kConfig: another architecture (with the way out, --params), a
// mixture of experts, a missing or impossible number.
base::Result<Model> model_from_config(const base::Json& config);

// Only a number of parameters is known: states can be told, activations and the largest layer cannot (they stay 0).
Model model_from_count(int64_t parameters);

// "7B", "1.3b", "350M", "124439808".
base::Result<int64_t> parse_parameter_count(std::string_view text);

}  // namespace phalanx::fit
