// adapter_config.json of PEFT: which projections of a model have an adapter, of what rank and scale.
// Source: huggingface/peft v0.18.0, LoraConfig and get_pattern_key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace phalanx::tune {

struct AdapterConfig {
  int64_t rank = 8;
  double alpha = 16;
  double dropout = 0;
  bool rslora = false;                                          // scale alpha / sqrt(rank) instead of alpha / rank
  bool all_linear = false;                                      // every projection but the head
  std::vector<std::string> targets{};                           // last parts of names of projections
  std::vector<int64_t> layers{};                                // empty: all
  std::vector<std::pair<std::string, int64_t>> rank_pattern{};  // ends of names; the first that fits counts, ranks before alphas
  std::vector<std::pair<std::string, double>> alpha_pattern{};
  std::vector<std::string> saved{};  // modules_to_save: ends of names of modules that are trained whole
  std::string base_model{};          // a folder, as it was given
};

// Error kConfig: not such a file, or a kind of adapter that is not supported, by name.
base::Result<AdapterConfig> parse_adapter_config(std::string_view json);
// As PEFT writes it.
std::string to_text(const AdapterConfig& config);

struct AdapterShape {
  int64_t rank = 0;
  double scale = 0;
};
// Of the projection "model.layers.0.self_attn.q_proj"; nothing if it has no adapter.
std::optional<AdapterShape> adapter_of(const AdapterConfig& config, std::string_view projection);

// Whether the parameter "model.embed_tokens.weight" belongs to a module that is trained whole.
bool is_saved(const AdapterConfig& config, std::string_view parameter);

}  // namespace phalanx::tune
