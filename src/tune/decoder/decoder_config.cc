#include "tune/decoder/decoder_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/counted.h"
#include "base/json.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::tune {
namespace {

using base::Json;

constexpr int64_t kMaxSize = 1 << 24;  // of any dimension
constexpr int64_t kMaxLayers = 4096;

base::Error bad(std::string why) { return base::fail(base::ErrorKind::kConfig, "cannot use config.json").because(std::move(why)); }

base::Status read_size(const Json& json, const char* key, int64_t most, int64_t* out) {
  auto found = json.find(key);
  if (found == json.end() || found->is_null()) {
    if (*out > 0) return base::ok();
    return bad(fmt::format("{} is missing", key));
  }
  const std::optional<int64_t> value = base::get_int(json, key);
  if (!value || *value < 1 || *value > most) return bad(fmt::format("{} is not a whole number from 1 to {}", key, most));
  *out = *value;
  return base::ok();
}

double number_or(const Json& json, const char* key, double otherwise) { return base::get_number(json, key).value_or(otherwise); }

base::Status read_factors(const Json& scaling, const char* key, int64_t count, std::vector<double>* out) {
  auto found = scaling.find(key);
  if (found == scaling.end() || !found->is_array() || static_cast<int64_t>(found->size()) != count)
    return bad(base::counted("{} is not a list of {} numbers", key, count));
  for (const Json& one : *found) {
    if (!one.is_number() || !(one.get<double>() >= 1e-3 && one.get<double>() <= 1e6))
      return bad(fmt::format("a number of {} is out of range", key));
    out->push_back(one.get<double>());
  }
  return base::ok();
}

base::Result<Rope::Kind> kind_of_rope(const std::string& type) {
  constexpr std::array kKinds{std::pair{"default", Rope::Kind::kDefault}, std::pair{"linear", Rope::Kind::kLinear},
                              std::pair{"dynamic", Rope::Kind::kDynamic}, std::pair{"llama3", Rope::Kind::kLlama3},
                              std::pair{"yarn", Rope::Kind::kYarn},       std::pair{"longrope", Rope::Kind::kLongRope},
                              std::pair{"su", Rope::Kind::kLongRope}};
  for (const auto& [name, kind] : kKinds)
    if (type == name) return kind;
  return bad(fmt::format("rope_type {} is not supported", base::quote(type)));
}

// Of one rope: `scaling` is rope_scaling, or rope_parameters; the rest is at the top of the file.
base::Status read_rope(const Json& config, const Json& scaling, double theta, const DecoderConfig& shape, Rope* out) {
  if (!scaling.is_object()) return bad("rope_scaling is not an object");
  out->theta = number_or(scaling, "rope_theta", theta);
  const std::string type = base::get_string(scaling, "rope_type").value_or(base::get_string(scaling, "type").value_or("default"));
  TRY_ASSIGN(out->kind, kind_of_rope(type));
  out->factor = number_or(scaling, "factor", 1);
  out->low_freq_factor = number_or(scaling, "low_freq_factor", 1);
  out->high_freq_factor = number_or(scaling, "high_freq_factor", 4);
  out->beta_fast = number_or(scaling, "beta_fast", 32);
  out->beta_slow = number_or(scaling, "beta_slow", 1);
  out->attention_factor = base::get_number(scaling, "attention_factor");
  out->original_positions = shape.positions;
  if (out->kind == Rope::Kind::kLongRope) {
    TRY(read_size(config, "original_max_position_embeddings", int64_t{1} << 32, &out->original_positions));
    TRY(read_factors(scaling, "short_factor", shape.rotary_dim / 2, &out->short_factors));
    TRY(read_factors(scaling, "long_factor", shape.rotary_dim / 2, &out->long_factors));
  }
  TRY(read_size(scaling, "original_max_position_embeddings", int64_t{1} << 32, &out->original_positions));
  auto within = [](double value, double least, double most) { return value >= least && value <= most; };
  if (!within(out->theta, 1.001, 1e15) || !within(out->factor, 1e-3, 1e6) || !within(out->low_freq_factor, 1e-3, 1e6) ||
      !within(out->high_freq_factor, 1e-3, 1e6) || out->high_freq_factor <= out->low_freq_factor || !within(out->beta_fast, 1e-3, 1e6) ||
      !within(out->beta_slow, 1e-3, 1e6) || !within(out->attention_factor.value_or(1), 1e-3, 1e6))
    return bad("a number of rope_scaling is out of range");
  if (out->kind == Rope::Kind::kDynamic && (out->factor < 1 || shape.rotary_dim < 4))
    return bad("a number of rope_scaling is out of range");
  if (out->kind == Rope::Kind::kLongRope && out->original_positions < 2) return bad("a number of rope_scaling is out of range");
  return base::ok();
}

// Gemma 3 has two: one for layers with a window, which is never scaled. transformers 5 writes one below each type of layer.
base::Status read_ropes(const Json& config, DecoderConfig* out) {
  const bool two = out->model_type == "gemma3_text";
  auto found = config.find("rope_parameters");
  if (found == config.end() || found->is_null()) found = config.find("rope_scaling");
  const Json scaling = found == config.end() || found->is_null() ? Json::object() : *found;
  const double theta = number_or(config, "rope_theta", two ? 1e6 : 10000), local = number_or(config, "rope_local_base_freq", 10000);
  if (!two) return read_rope(config, scaling, theta, *out, &out->rope);
  const bool nested = scaling.is_object() && scaling.contains("full_attention");
  TRY(read_rope(config, nested ? scaling["full_attention"] : scaling, theta, *out, &out->rope));
  const bool says = nested && scaling.contains("sliding_attention");
  return read_rope(config, says ? scaling["sliding_attention"] : Json::object(), local, *out, &out->window_rope.emplace());
}

bool is_gemma(const DecoderConfig& config) { return config.model_type.starts_with("gemma"); }

// Which layers have a window where layer_types does not say it. Mistral, Phi-3: all; Qwen: from max_window_layers on; Gemma 2: even ones;
// Gemma 3: all but every sliding_window_pattern-th.
base::Result<std::vector<bool>> windowed_layers(const Json& json, const DecoderConfig& config) {
  std::vector<bool> out(static_cast<size_t>(config.layers), true);
  int64_t first = 0, pattern = 6;
  if (config.model_type.starts_with("qwen")) first = base::get_int(json, "max_window_layers").value_or(28);
  TRY(read_size(json, "sliding_window_pattern", kMaxLayers, &pattern));
  for (int64_t i = 0; i < config.layers; ++i) {
    auto layer = out.begin() + i;
    if (config.model_type == "gemma2") *layer = i % 2 == 0;
    else if (config.model_type == "gemma3_text") *layer = (i + 1) % pattern != 0;
    else *layer = i >= first;
  }
  auto types = json.find("layer_types");
  if (types == json.end() || !types->is_array()) return out;
  if (types->size() != out.size()) return bad("layer_types has another length than num_hidden_layers");
  for (size_t i = 0; i < out.size(); ++i) out[i] = (*types)[i] == "sliding_attention";
  return out;
}

base::Status read_windows(const Json& json, DecoderConfig* out) {
  out->windows.assign(static_cast<size_t>(out->layers), 0);
  const bool qwen = out->model_type.starts_with("qwen"), by_default = out->model_type == "gemma2" || out->model_type == "gemma3_text";
  auto window = json.find("sliding_window");
  const bool given = window != json.end() && !window->is_null();
  const bool asked = by_default ? window == json.end() || given : given && out->model_type != "llama" && out->model_type != "gemma";
  if (!asked || (qwen && !base::get_bool(json, "use_sliding_window").value_or(false))) return base::ok();
  int64_t size = by_default ? 4096 : 0;
  TRY(read_size(json, "sliding_window", int64_t{1} << 32, &size));
  TRY_ASSIGN(const std::vector<bool> windowed, windowed_layers(json, *out));
  for (size_t i = 0; i < windowed.size(); ++i)
    if (windowed[i]) out->windows[i] = size;
  return base::ok();
}

base::Status read_cap(const Json& json, const char* key, double by_default, double* out) {
  auto found = json.find(key);
  *out = found == json.end() ? by_default : found->is_null() ? 0 : number_or(json, key, -1);
  return *out >= 0 && *out <= 1e6 ? base::ok() : bad(fmt::format("{} is out of range", key));
}

base::Status read_gemma(const Json& json, DecoderConfig* out) {
  const bool second = out->model_type == "gemma2", first = out->model_type == "gemma";
  out->unit_norms = true;
  out->branch_norms = !first;
  out->head_norms = out->model_type == "gemma3_text";
  if (!out->tied) out->tied = true;
  TRY(read_cap(json, "attn_logit_softcapping", second ? 50 : 0, &out->score_cap));
  TRY(read_cap(json, "final_logit_softcapping", second ? 30 : 0, &out->logit_cap));
  if (first) out->score_cap = out->logit_cap = 0;
  if (base::get_bool(json, "use_bidirectional_attention").value_or(false)) return bad("use_bidirectional_attention is not supported");
  return base::ok();
}

// Gemma ignores hidden_act where hidden_activation is missing: the first files named the wrong one.
base::Status read_activation(const Json& json, DecoderConfig* out) {
  const char* key = is_gemma(*out) ? "hidden_activation" : "hidden_act";
  const std::string act = base::get_string(json, key).value_or(is_gemma(*out) ? "gelu_pytorch_tanh" : "silu");
  if (act == "silu") out->activation = Activation::kSilu;
  else if (act == "gelu_pytorch_tanh") out->activation = Activation::kGeluTanh;
  else return bad(fmt::format("{} {} is not supported", key, base::quote(act)));
  return base::ok();
}

base::Status read_family(const Json& json, DecoderConfig* out) {
  constexpr std::array<std::string_view, 8> kFamilies{"llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3"};
  out->model_type = base::get_string(json, "model_type").value_or("");
  const std::string& type = out->model_type;
  if (std::find(kFamilies.begin(), kFamilies.end(), type) == kFamilies.end())
    return bad(fmt::format("model_type {} is not supported", base::quote(type)))
        .with_hint("llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text and phi3 are supported");
  if (json.contains("quantization_config")) return bad("its weights are quantized");
  const bool attention_bias = base::get_bool(json, "attention_bias").value_or(false), never = type == "mistral" || type == "phi3";
  out->qkv_bias = type == "qwen2" || (!never && attention_bias);
  out->out_bias = type != "qwen2" && !never && attention_bias;
  out->mlp_bias = type == "llama" && base::get_bool(json, "mlp_bias").value_or(false);
  out->head_norms = type == "qwen3";
  out->packed = type == "phi3";
  out->tied = base::get_bool(json, "tie_word_embeddings");
  TRY(read_activation(json, out));
  return is_gemma(*out) ? read_gemma(json, out) : base::ok();
}

// Sizes of the heads, how much of one turns, and what scores are multiplied with.
base::Status read_heads(const Json& json, DecoderConfig* out) {
  TRY(read_size(json, "num_attention_heads", kMaxSize, &out->heads));
  out->kv_heads = out->heads;
  TRY(read_size(json, "num_key_value_heads", kMaxSize, &out->kv_heads));
  out->head_dim = is_gemma(*out) ? 256 : out->model_type == "qwen3" ? 128 : out->hidden / out->heads;
  TRY(read_size(json, "head_dim", kMaxSize, &out->head_dim));
  if (out->heads % out->kv_heads != 0) return bad("num_key_value_heads does not divide num_attention_heads");
  if (out->head_dim % 2 != 0) return bad("head_dim is odd");
  const double share = number_or(json, "partial_rotary_factor", 1);
  if (!(share > 0 && share <= 1)) return bad("partial_rotary_factor is out of range");
  out->rotary_dim = static_cast<int64_t>(static_cast<double>(out->head_dim) * share);
  if (out->rotary_dim % 2 != 0 || out->rotary_dim == 0) return bad("partial_rotary_factor gives an odd number of columns");
  const bool says = out->branch_norms;  // Gemma 2 and 3
  const double scalar = says ? number_or(json, "query_pre_attn_scalar", 256) : static_cast<double>(out->head_dim);
  if (!(scalar > 0 && scalar <= 1e9)) return bad("query_pre_attn_scalar is out of range");
  out->attention_scale = 1 / std::sqrt(scalar);
  return base::ok();
}

}  // namespace

base::Result<DecoderConfig> parse_decoder_config(std::string_view text) {
  TRY_ASSIGN(const Json json, base::parse_json(text, 1 << 20));
  if (!json.is_object()) return bad("it is not an object");
  DecoderConfig out;
  TRY(read_family(json, &out));
  TRY(read_size(json, "vocab_size", kMaxSize, &out.vocabulary));
  TRY(read_size(json, "hidden_size", kMaxSize, &out.hidden));
  TRY(read_size(json, "intermediate_size", kMaxSize, &out.intermediate));
  TRY(read_size(json, "num_hidden_layers", kMaxLayers, &out.layers));
  if (is_gemma(out)) out.embedding_scale = std::sqrt(static_cast<double>(out.hidden));
  TRY(read_heads(json, &out));
  out.positions = 2048;
  TRY(read_size(json, "max_position_embeddings", int64_t{1} << 32, &out.positions));
  out.norm_epsilon = number_or(json, "rms_norm_eps", 1e-6);
  if (!(out.norm_epsilon > 0)) return bad("rms_norm_eps is not positive");
  TRY(read_ropes(json, &out));
  TRY(read_windows(json, &out));
  return out;
}

}  // namespace phalanx::tune
