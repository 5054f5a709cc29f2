#include "engine/finetune/trained_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/tuning/adapter.h"

namespace phalanx::engine::finetune {
namespace {

using tune::AdapterConfig;

base::Error no_such(const char* key, const std::string& name, const std::vector<std::string>& known) {
  base::Error error = base::fail(base::ErrorKind::kConfig, fmt::format("{}: the model has no {}", key, base::quote(name)))
                          .because(fmt::format("it has {}", base::join(known, ", ")));
  if (auto near = base::closest(name, known)) return std::move(error).with_hint(fmt::format("{}: {}", key, *near));
  return error;
}

bool has(const std::vector<std::string>& all, const std::string& one) { return std::find(all.begin(), all.end(), one) != all.end(); }

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// `all` becomes the names that it stands for, as LLaMA-Factory writes them into adapter_config.json.
base::Result<AdapterConfig> new_adapter(tuning::Decoder& decoder, const tune::Recipe& recipe) {
  AdapterConfig out;
  out.rank = recipe.lora_rank;
  out.alpha = static_cast<double>(recipe.lora_alpha.value_or(2 * recipe.lora_rank));
  out.dropout = recipe.lora_dropout;
  out.rslora = recipe.use_rslora;
  out.base_model = recipe.model_name_or_path;
  out.saved = saved_modules(recipe);
  std::vector<std::string> known;
  for (const auto& [name, projection] : decoder->projections())
    if (!has(known, last_part(name))) known.push_back(last_part(name));
  if (recipe.lora_target == std::vector<std::string>{"all"}) {
    out.targets = known;
    return out;
  }
  for (const std::string& target : recipe.lora_target)
    if (!has(known, target)) return no_such("lora_target", target, known);
  out.targets = recipe.lora_target;
  return out;
}

base::Result<AdapterConfig> add_lora(tuning::Decoder& decoder, const tune::Recipe& recipe) {
  const std::vector<std::string>& folders = recipe.adapter_name_or_path;
  const size_t merged = merged_adapters(recipe);
  for (size_t i = 0; i < merged; ++i) {
    TRY_ASSIGN([[maybe_unused]] const AdapterConfig config, tuning::read_adapter(decoder, folders[i]));
    tuning::merge_adapters(decoder);
  }
  if (merged < folders.size()) return tuning::read_adapter(decoder, folders.back());
  TRY_ASSIGN(AdapterConfig config, new_adapter(decoder, recipe));
  TRY(tuning::add_adapters(decoder, config, static_cast<uint64_t>(recipe.seed)));
  return config;
}

// Layer and module of "model.layers.3.mlp.up_proj.weight"; -1 for what is in no layer.
struct Place {
  int64_t layer = -1;
  std::string module;
};
Place place_of(const std::string& parameter) {
  const auto parts = base::split(parameter, '.');
  if (parts.size() < 5 || parts[1] != "layers") return {};
  auto layer = base::parse_int(parts[2], 0, 1 << 20);
  return layer.ok() ? Place{*layer, std::string(parts[3])} : Place{};
}

base::Status check_extra_modules(tuning::Decoder& decoder, const tune::Recipe& recipe) {
  std::vector<std::string> known;
  for (const auto& item : decoder->named_parameters()) {
    if (place_of(item.key()).layer >= 0) continue;
    const std::string module = last_part(item.key().substr(0, item.key().rfind('.')));
    if (!has(known, module)) known.push_back(module);
  }
  for (const std::string& module : recipe.freeze_extra_modules)
    if (!has(known, module)) return no_such("freeze_extra_modules", module, known);
  return base::ok();
}

// LLaMA-Factory takes every parameter whose name has the module's anywhere: "norm" is every norm.
bool is_extra(const std::string& parameter, const tune::Recipe& recipe) {
  const std::vector<std::string>& modules = recipe.freeze_extra_modules;
  return std::any_of(modules.begin(), modules.end(),
                     [&](const std::string& module) { return parameter.find(module) != std::string::npos; });
}

// Source: hiyouga/LLaMA-Factory v0.9.3, src/llamafactory/model/adapter.py (_setup_freeze_tuning).
base::Status thaw_layers(tuning::Decoder& decoder, const tune::Recipe& recipe) {
  const auto layers = static_cast<int64_t>(decoder->layers.size()), wanted = recipe.freeze_trainable_layers;
  const int64_t first = wanted > 0 ? std::max<int64_t>(layers - wanted, 0) : 0, end = wanted > 0 ? layers : std::min(-wanted, layers);
  if (first >= end) return base::fail(base::ErrorKind::kConfig, "freeze_trainable_layers: 0 trains nothing");
  std::vector<std::string> known{"all"};
  for (const auto& item : decoder->named_parameters())
    if (const Place place = place_of(item.key()); place.layer >= 0 && !has(known, place.module)) known.push_back(place.module);
  for (const std::string& module : recipe.freeze_trainable_modules)
    if (!has(known, module)) return no_such("freeze_trainable_modules", module, known);
  TRY(check_extra_modules(decoder, recipe));
  const bool all = has(recipe.freeze_trainable_modules, "all");
  for (auto& item : decoder->named_parameters()) {
    const Place place = place_of(item.key());
    const bool inside = place.layer >= first && place.layer < end;
    const bool wanted_here = inside && (all || has(recipe.freeze_trainable_modules, place.module));
    if (wanted_here || is_extra(item.key(), recipe)) item.value().set_requires_grad(true);
  }
  return base::ok();
}

}  // namespace

std::vector<std::string> saved_modules(const tune::Recipe& recipe) {
  if (!recipe.additional_target.empty() || !recipe.extends_vocabulary()) return recipe.additional_target;
  return {"embed_tokens", "lm_head"};
}

size_t merged_adapters(const tune::Recipe& recipe) {
  const size_t all = recipe.adapter_name_or_path.size();
  return all > 0 && !recipe.create_new_adapter ? all - 1 : all;
}

base::Result<std::optional<AdapterConfig>> choose_trained(tuning::Decoder& decoder, const tune::Recipe& recipe) {
  using Chosen = std::optional<AdapterConfig>;
  if (recipe.finetuning_type == "lora") {
    TRY_ASSIGN(AdapterConfig config, add_lora(decoder, recipe));
    return Chosen(std::move(config));
  }
  if (recipe.finetuning_type == "freeze") TRY(thaw_layers(decoder, recipe));
  else
    for (at::Tensor& parameter : decoder->parameters()) parameter.set_requires_grad(true);
  return Chosen();
}

}  // namespace phalanx::engine::finetune
