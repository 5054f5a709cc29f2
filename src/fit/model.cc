#include "fit/model.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::fit {
namespace {

// Together they keep the sum over all layers below 2^62.
constexpr int64_t kMost = int64_t{1} << 31;      // vocabulary, positions
constexpr int64_t kMostWide = int64_t{1} << 22;  // hidden, intermediate
constexpr int64_t kMostHeads = 4096;             // and their size
constexpr int64_t kMostLayers = 10'000;

struct Reader {
  const base::Json& config;
  std::optional<base::Error> fault;

  int64_t number(const char* key, std::optional<int64_t> otherwise = {}, int64_t most = kMost) {
    auto found = config.find(key);
    bool absent = found == config.end() || found->is_null();
    if (absent && otherwise) return *otherwise;
    std::optional<int64_t> value = base::get_int(config, key);
    if (!value || *value < 1 || *value > most) {
      if (!fault)
        fault = base::fail(base::ErrorKind::kConfig,
                           absent ? fmt::format("the model's configuration has no {}", key)
                                  : fmt::format("{} in the model's configuration is not a whole number from 1 to {}", key, most));
      return 1;
    }
    return *value;
  }
};

struct Architecture {
  std::string_view type;
  bool attention_bias;      // q, k, v have biases whatever the configuration says
  bool head_norms;          // q_norm and k_norm
  int64_t key_value_heads;  // default; 0: as many as heads
  bool tied;                // default of tie_word_embeddings
};
// Defaults: transformers configuration_llama.py, _mistral.py, _qwen2.py, _qwen3.py.
constexpr Architecture kGated[] = {{"llama", false, false, 0, false},
                                   {"mistral", false, false, 8, false},
                                   {"qwen2", true, false, 32, false},
                                   {"qwen3", false, true, 32, false}};

// RMS norms, grouped-query attention, gated MLP: gate, up, down.
void count_gated(Model& m, const Architecture& a, bool attention_bias, bool mlp_bias) {
  int64_t q = m.heads * m.head_size, kv = m.key_value_heads * m.head_size;
  int64_t attention = m.hidden * q + 2 * m.hidden * kv + q * m.hidden;
  if (a.attention_bias) attention += q + 2 * kv;
  if (attention_bias) attention += q + 2 * kv + m.hidden;
  if (a.head_norms) attention += 2 * m.head_size;
  int64_t mlp = 3 * m.hidden * m.intermediate + (mlp_bias ? 2 * m.intermediate + m.hidden : 0);
  m.block = attention + mlp + 2 * m.hidden;
  m.linear_widths = m.layers * (2 * (m.hidden + q) + 2 * (m.hidden + kv) + 3 * (m.hidden + m.intermediate));
  int64_t embedding = m.vocabulary * m.hidden;
  m.parameters = m.layers * m.block + m.hidden + embedding * (m.tied ? 1 : 2);
  m.largest_layer = std::max({embedding, m.hidden * m.intermediate, m.hidden * q});
}

// Layer norms with biases, Conv1D attention (3h) and MLP with biases, learned positions; the output layer is always tied.
void count_gpt2(Model& m) {
  int64_t h = m.hidden, f = m.intermediate;
  m.block = 2 * 2 * h + (h * 3 * h + 3 * h) + (h * h + h) + (h * f + f) + (f * h + h);
  m.linear_widths = m.layers * (4 * h + 2 * h + 2 * (h + f));
  int64_t embedding = m.vocabulary * h;
  m.parameters = m.layers * m.block + 2 * h + embedding + m.positions * h;
  m.largest_layer = std::max({embedding, m.positions * h, h * 3 * h + 3 * h, h * f + f});
}

Model read_gpt2(Reader& r) {
  Model m;
  m.name = "gpt2";
  m.layers = r.number("n_layer", 12, kMostLayers);
  m.hidden = r.number("n_embd", 768, kMostWide);
  m.heads = r.number("n_head", 12, kMostHeads);
  m.key_value_heads = m.heads;
  m.intermediate = r.number("n_inner", 4 * m.hidden, kMostWide);
  m.vocabulary = r.number("vocab_size", 50257);
  m.positions = r.number("n_positions", 1024);
  m.head_size = m.hidden / m.heads;
  m.tied = true;
  count_gpt2(m);
  return m;
}

Model read_gated(Reader& r, const Architecture& a) {
  Model m;
  m.name = std::string(a.type);
  m.layers = r.number("num_hidden_layers", {}, kMostLayers);
  m.hidden = r.number("hidden_size", {}, kMostWide);
  m.intermediate = r.number("intermediate_size", {}, kMostWide);
  m.heads = r.number("num_attention_heads", {}, kMostHeads);
  m.key_value_heads = r.number("num_key_value_heads", a.key_value_heads ? a.key_value_heads : m.heads, kMostHeads);
  m.vocabulary = r.number("vocab_size");
  m.positions = r.number("max_position_embeddings", 2048);
  m.head_size = r.number("head_dim", a.head_norms ? 128 : std::max<int64_t>(1, m.hidden / m.heads), kMostHeads);
  m.tied = base::get_bool(r.config, "tie_word_embeddings").value_or(a.tied);
  count_gated(m, a, base::get_bool(r.config, "attention_bias").value_or(false), base::get_bool(r.config, "mlp_bias").value_or(false));
  return m;
}

}  // namespace

base::Result<Model> model_from_config(const base::Json& config) {
  if (!config.is_object()) return base::fail(base::ErrorKind::kConfig, "the model's configuration is not a JSON object");
  std::string type = base::get_string(config, "model_type").value_or("");
  Reader reader{config, {}};
  auto known = std::find_if(std::begin(kGated), std::end(kGated), [&](const Architecture& a) { return a.type == type; });
  if (type != "gpt2" && known == std::end(kGated))
    return base::fail(base::ErrorKind::kConfig, type.empty() ? "the model's configuration has no model_type"
                                                             : fmt::format("unsupported model_type {}", base::printable(type, 40)))
        .because("fit supports llama, mistral, qwen2, qwen3 and gpt2")
        .with_hint("phalanx fit --params 7B   (give the number of parameters instead)");
  Model model = type == "gpt2" ? read_gpt2(reader) : read_gated(reader, *known);
  if (reader.fault) return *std::move(reader.fault);
  // 128-bit worst case is far away for honest files; dimensions that multiply beyond any machine are refused.
  if (static_cast<double>(model.layers) * static_cast<double>(model.hidden) *
              (static_cast<double>(model.intermediate) + 4.0 * static_cast<double>(model.hidden)) >
          1e16 ||
      static_cast<double>(model.vocabulary) * static_cast<double>(model.hidden) > 1e16)
    return base::fail(base::ErrorKind::kConfig, "the model's configuration describes more than 10^16 parameters");
  return model;
}

Model model_from_count(int64_t parameters) {
  Model m;
  m.name = "parameters";
  m.parameters = parameters;
  return m;
}

base::Result<int64_t> parse_parameter_count(std::string_view text) {
  auto refuse = [&] {
    return base::fail(base::ErrorKind::kUsage, fmt::format("\"{}\" is not a number of parameters", base::printable(text, 40)))
        .with_hint("write 7B, 1.3B, 350M or 124439808");
  };
  if (text.empty()) return refuse();
  double factor = 1;
  switch (text.back()) {
    case 'k':
    case 'K': factor = 1e3; break;
    case 'm':
    case 'M': factor = 1e6; break;
    case 'b':
    case 'B': factor = 1e9; break;
    case 't':
    case 'T': factor = 1e12; break;
    default: break;
  }
  std::string_view digits = factor > 1 ? text.substr(0, text.size() - 1) : text;
  double value = 0, place = 0;
  for (char c : digits) {
    if (c == '.' && place == 0 && factor > 1) {
      place = 1;
    } else if (c >= '0' && c <= '9') {
      value = value * 10 + (c - '0');
      place *= 10;
    } else {
      return refuse();
    }
  }
  value = value * factor / (place > 0 ? place : 1);
  if (digits.empty() || digits == "." || value < 1 || value > 1e16) return refuse();
  return static_cast<int64_t>(std::llround(value));
}

}  // namespace phalanx::fit
