#include "tune/adapter/adapter_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::tune {
namespace {

using base::Json;

constexpr int64_t kMaxRank = 1 << 16;

base::Error bad(std::string why) { return base::fail(base::ErrorKind::kConfig, "cannot use adapter_config.json").because(std::move(why)); }

// A name or the end of one. PEFT takes regular expressions, of which only the dot is understood here, as itself.
bool is_plain(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

bool ends_in(std::string_view name, std::string_view part) {
  return name == part || (name.ends_with(part) && name[name.size() - part.size() - 1] == '.');
}

base::Status read_targets(const Json& json, AdapterConfig* out) {
  auto found = json.find("target_modules");
  if (found == json.end() || found->is_null()) return bad("target_modules is missing");
  if (*found == "all-linear") {
    out->all_linear = true;
    return base::ok();
  }
  if (!found->is_array()) return bad("target_modules is a pattern; a list of names is supported");
  for (const Json& one : *found) {
    if (!one.is_string() || !is_plain(one.get<std::string>())) return bad("target_modules is not a list of names");
    out->targets.push_back(one.get<std::string>());
  }
  return base::ok();
}

base::Status read_saved(const Json& json, AdapterConfig* out) {
  auto found = json.find("modules_to_save");
  if (found == json.end() || found->is_null()) return base::ok();
  if (!found->is_array()) return bad("modules_to_save is not a list of names");
  for (const Json& one : *found) {
    if (!one.is_string() || !is_plain(one.get<std::string>())) return bad("modules_to_save is not a list of names");
    out->saved.push_back(one.get<std::string>());
  }
  return base::ok();
}

base::Status read_layers(const Json& json, AdapterConfig* out) {
  auto found = json.find("layers_to_transform");
  if (found == json.end() || found->is_null()) return base::ok();
  const Json list = found->is_array() ? *found : Json::array({*found});
  for (const Json& one : list) {
    if (!one.is_number_integer() || one.get<int64_t>() < 0) return bad("layers_to_transform is not a list of numbers");
    out->layers.push_back(one.get<int64_t>());
  }
  return base::ok();
}

template <typename T>
base::Status read_pattern(const Json& json, const char* key, std::vector<std::pair<std::string, T>>* out) {
  auto found = json.find(key);
  if (found == json.end() || found->is_null()) return base::ok();
  if (!found->is_object()) return bad(fmt::format("{} is not an object", key));
  for (const auto& [name, value] : found->items()) {
    const double number = value.is_number() ? value.template get<double>() : 0;
    if (!is_plain(name)) return bad(fmt::format("{}: {} is not the end of a name", key, base::quote(name)));
    if (!(number > 0) || number > kMaxRank || (std::is_integral_v<T> && number != std::floor(number)))
      return bad(fmt::format("{}: the value of {} is out of range", key, base::quote(name)));
    out->emplace_back(name, static_cast<T>(number));
  }
  return base::ok();
}

bool is_set(const Json& json, const char* key) {
  auto found = json.find(key);
  return found != json.end() && !found->is_null() && *found != false && !(found->is_structured() && found->empty());
}

base::Status check_kind(const Json& json) {
  if (base::get_string(json, "peft_type").value_or("") != "LORA") return bad("peft_type is not LORA");
  for (const char* key :
       {"use_dora", "fan_in_fan_out", "layer_replication", "lora_bias", "trainable_token_indices", "exclude_modules", "target_parameters"})
    if (is_set(json, key)) return bad(fmt::format("{} is not supported", key));
  if (base::get_string(json, "bias").value_or("none") != "none") return bad("bias other than none is not supported");
  return base::ok();
}

int64_t layer_of(std::string_view projection) {
  for (std::string_view part : base::split(projection, '.'))
    if (auto number = base::parse_int(part, 0, 1 << 30); number.ok()) return *number;
  return -1;
}

}  // namespace

base::Result<AdapterConfig> parse_adapter_config(std::string_view text) {
  TRY_ASSIGN(const Json json, base::parse_json(text, 1 << 20));
  if (!json.is_object()) return bad("it is not an object");
  TRY(check_kind(json));
  AdapterConfig out;
  out.rank = base::get_int(json, "r").value_or(8);
  if (out.rank < 1 || out.rank > kMaxRank) return bad(fmt::format("r is not a whole number from 1 to {}", kMaxRank));
  out.alpha = base::get_number(json, "lora_alpha").value_or(8);
  out.dropout = base::get_number(json, "lora_dropout").value_or(0);
  if (!(out.alpha > 0) || !(out.dropout >= 0 && out.dropout < 1)) return bad("lora_alpha or lora_dropout is out of range");
  out.rslora = base::get_bool(json, "use_rslora").value_or(false);
  out.base_model = base::get_string(json, "base_model_name_or_path").value_or("");
  TRY(read_targets(json, &out));
  TRY(read_saved(json, &out));
  TRY(read_layers(json, &out));
  TRY(read_pattern(json, "rank_pattern", &out.rank_pattern));
  TRY(read_pattern(json, "alpha_pattern", &out.alpha_pattern));
  return out;
}

std::string to_text(const AdapterConfig& config) {
  auto number = [](double value) { return value == std::floor(value) ? Json(static_cast<int64_t>(value)) : Json(value); };
  Json ranks = Json::object(), alphas = Json::object();
  for (const auto& [name, value] : config.rank_pattern) ranks[name] = value;
  for (const auto& [name, value] : config.alpha_pattern) alphas[name] = number(value);
  Json json = {{"alpha_pattern", alphas},
               {"auto_mapping", nullptr},
               {"base_model_name_or_path", config.base_model},
               {"bias", "none"},
               {"fan_in_fan_out", false},
               {"inference_mode", true},
               {"init_lora_weights", true},
               {"layer_replication", nullptr},
               {"layers_pattern", nullptr},
               {"layers_to_transform", config.layers.empty() ? Json() : Json(config.layers)},
               {"loftq_config", Json::object()},
               {"lora_alpha", number(config.alpha)},
               {"lora_dropout", config.dropout},
               {"megatron_config", nullptr},
               {"megatron_core", "megatron.core"},
               {"modules_to_save", config.saved.empty() ? Json() : Json(config.saved)},
               {"peft_type", "LORA"},
               {"r", config.rank},
               {"rank_pattern", ranks},
               {"revision", nullptr},
               {"target_modules", config.all_linear ? Json("all-linear") : Json(config.targets)},
               {"task_type", "CAUSAL_LM"},
               {"use_dora", false},
               {"use_rslora", config.rslora}};
  return base::to_text(json, 2) + "\n";
}

// As PEFT finds them, without regard to where a part of a name begins: "norm" is the end of input_layernorm too.
bool is_saved(const AdapterConfig& config, std::string_view parameter) {
  for (size_t dot = parameter.find('.'); dot != std::string_view::npos; dot = parameter.find('.', dot + 1)) {
    const std::string_view module = parameter.substr(0, dot);
    if (std::any_of(config.saved.begin(), config.saved.end(), [&](const std::string& name) { return module.ends_with(name); })) return true;
  }
  return false;
}

std::optional<AdapterShape> adapter_of(const AdapterConfig& config, std::string_view projection) {
  auto is_target = [&](const std::string& target) { return ends_in(projection, target); };
  if (!config.all_linear && std::none_of(config.targets.begin(), config.targets.end(), is_target)) return std::nullopt;
  if (!config.layers.empty() && std::find(config.layers.begin(), config.layers.end(), layer_of(projection)) == config.layers.end())
    return std::nullopt;
  std::string_view pattern;
  for (const auto& [name, rank] : config.rank_pattern)
    if (pattern.empty() && ends_in(projection, name)) pattern = name;
  for (const auto& [name, alpha] : config.alpha_pattern)
    if (pattern.empty() && ends_in(projection, name)) pattern = name;
  AdapterShape out{config.rank, config.alpha};
  for (const auto& [name, rank] : config.rank_pattern)
    if (name == pattern) out.rank = rank;
  for (const auto& [name, alpha] : config.alpha_pattern)
    if (name == pattern) out.scale = alpha;
  out.scale /= config.rslora ? std::sqrt(static_cast<double>(out.rank)) : static_cast<double>(out.rank);
  return out;
}

}  // namespace phalanx::tune
