#include "tune/decoder/decoder_config.h"

#include <fmt/format.h>

#include <array>

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

base::Status read_rope(const Json& config, int64_t positions, Rope* out) {
  auto found = config.find("rope_parameters");
  if (found == config.end() || found->is_null()) found = config.find("rope_scaling");
  const Json scaling = found == config.end() || found->is_null() ? Json::object() : *found;
  if (!scaling.is_object()) return bad("rope_scaling is not an object");
  out->theta = number_or(scaling, "rope_theta", number_or(config, "rope_theta", 10000));
  const std::string type = base::get_string(scaling, "rope_type").value_or(base::get_string(scaling, "type").value_or("default"));
  if (type == "default") out->kind = Rope::Kind::kDefault;
  else if (type == "linear") out->kind = Rope::Kind::kLinear;
  else if (type == "llama3") out->kind = Rope::Kind::kLlama3;
  else if (type == "yarn") out->kind = Rope::Kind::kYarn;
  else return bad(fmt::format("rope_type {} is not supported", base::quote(type)));
  out->factor = number_or(scaling, "factor", 1);
  out->low_freq_factor = number_or(scaling, "low_freq_factor", 1);
  out->high_freq_factor = number_or(scaling, "high_freq_factor", 4);
  out->beta_fast = number_or(scaling, "beta_fast", 32);
  out->beta_slow = number_or(scaling, "beta_slow", 1);
  out->attention_factor = base::get_number(scaling, "attention_factor");
  out->original_positions = positions;
  TRY(read_size(scaling, "original_max_position_embeddings", int64_t{1} << 32, &out->original_positions));
  auto within = [](double value, double least, double most) { return value >= least && value <= most; };
  if (!within(out->theta, 1.001, 1e15) || !within(out->factor, 1e-3, 1e6) || !within(out->low_freq_factor, 1e-3, 1e6) ||
      !within(out->high_freq_factor, 1e-3, 1e6) || out->high_freq_factor <= out->low_freq_factor || !within(out->beta_fast, 1e-3, 1e6) ||
      !within(out->beta_slow, 1e-3, 1e6))
    return bad("a number of rope_scaling is out of range");
  return base::ok();
}

// Mistral: all layers; Qwen: from max_window_layers on, if use_sliding_window; layer_types, where given, says it for each.
base::Status read_windows(const Json& json, DecoderConfig* out) {
  out->windows.assign(static_cast<size_t>(out->layers), 0);
  const bool qwen = out->model_type.starts_with("qwen");
  auto window = json.find("sliding_window");
  const bool asked = window != json.end() && !window->is_null() && out->model_type != "llama";
  if (!asked || (qwen && !base::get_bool(json, "use_sliding_window").value_or(false))) return base::ok();
  int64_t size = 0;
  TRY(read_size(json, "sliding_window", int64_t{1} << 32, &size));
  auto types = json.find("layer_types");
  if (types != json.end() && types->is_array()) {
    if (types->size() != out->windows.size()) return bad("layer_types has another length than num_hidden_layers");
    for (size_t i = 0; i < types->size(); ++i)
      if ((*types)[i] == "sliding_attention") out->windows[i] = size;
    return base::ok();
  }
  const int64_t first = qwen ? base::get_int(json, "max_window_layers").value_or(28) : 0;
  for (int64_t i = std::max<int64_t>(first, 0); i < out->layers; ++i) out->windows[static_cast<size_t>(i)] = size;
  return base::ok();
}

base::Status read_family(const Json& json, DecoderConfig* out) {
  out->model_type = base::get_string(json, "model_type").value_or("");
  const std::string& type = out->model_type;
  if (type != "llama" && type != "mistral" && type != "qwen2" && type != "qwen3")
    return bad(fmt::format("model_type {} is not supported", base::quote(type))).with_hint("llama, mistral, qwen2 and qwen3 are supported");
  const std::string act = base::get_string(json, "hidden_act").value_or("silu");
  if (act != "silu") return bad(fmt::format("hidden_act {} is not supported", base::quote(act)));
  if (json.contains("quantization_config")) return bad("its weights are quantized");
  const bool attention_bias = base::get_bool(json, "attention_bias").value_or(false);
  out->qkv_bias = type == "qwen2" || (type != "mistral" && attention_bias);
  out->out_bias = type != "qwen2" && type != "mistral" && attention_bias;
  out->mlp_bias = type == "llama" && base::get_bool(json, "mlp_bias").value_or(false);
  out->head_norms = type == "qwen3";
  out->tied = base::get_bool(json, "tie_word_embeddings");
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
  TRY(read_size(json, "num_attention_heads", kMaxSize, &out.heads));
  out.kv_heads = out.heads;
  TRY(read_size(json, "num_key_value_heads", kMaxSize, &out.kv_heads));
  out.head_dim = out.model_type == "qwen3" ? 128 : out.hidden / out.heads;
  TRY(read_size(json, "head_dim", kMaxSize, &out.head_dim));
  if (out.heads % out.kv_heads != 0) return bad("num_key_value_heads does not divide num_attention_heads");
  if (out.head_dim % 2 != 0) return bad("head_dim is odd");
  out.positions = 2048;
  TRY(read_size(json, "max_position_embeddings", int64_t{1} << 32, &out.positions));
  out.norm_epsilon = number_or(json, "rms_norm_eps", 1e-6);
  if (!(out.norm_epsilon > 0)) return bad("rms_norm_eps is not positive");
  TRY(read_rope(json, out.positions, &out.rope));
  TRY(read_windows(json, &out));
  return out;
}

}  // namespace phalanx::tune
