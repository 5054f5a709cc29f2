#include "engine/finetune/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "engine/finetune/trained_parts.h"
#include "engine/tuning/adapter.h"
#include "os/files.h"

namespace phalanx::engine::finetune {
namespace {

constexpr int64_t kRowsTogether = 64;  // an embedding grows to a multiple of them, as LLaMA-Factory has it

}  // namespace

base::Result<std::string> tokenizer_folder(const std::string& model, const std::vector<std::string>& adapters) {
  std::string out = model;
  bool own = false;
  for (const std::string& adapter : adapters) {
    TRY_ASSIGN(const tuning::Changes changes, tuning::changes_for(adapter));
    own |= changes.vocabulary > 0;
    TRY_ASSIGN(const bool present, os::is_present(adapter + "/tokenizer.json"));
    if (own && present) out = adapter;
  }
  return out;
}

base::Result<std::vector<words::Message>> notes_on_order(const std::vector<std::string>& adapters) {
  std::vector<words::Message> out;
  for (size_t i = 0; i < adapters.size(); ++i) {
    TRY_ASSIGN(const auto text, os::read_if_present(adapters[i] + "/" + kTemplateFile, 1 << 20));
    const auto about = text ? base::parse_json(*text) : base::Result<base::Json>(base::Json());
    if (!about.ok() || !about->is_object()) continue;
    const auto merged = about->find("merged_adapters");
    if (merged == about->end() || !merged->is_array() || merged->size() <= i) continue;
    std::vector<std::string> names;
    for (const base::Json& one : *merged) names.push_back(one.is_string() ? one.get<std::string>() : base::to_text(one));
    out.push_back(words::tr("{} was trained on a model that {} had been merged into: it is right on such a model only", adapters[i],
                            base::join(names, ", ")));
  }
  return out;
}

base::Result<tuning::Changes> changes_for(const std::vector<std::string>& adapters) {
  tuning::Changes out;
  for (const std::string& adapter : adapters) {
    TRY_ASSIGN(const tuning::Changes one, tuning::changes_for(adapter));
    out.vocabulary = std::max(out.vocabulary, one.vocabulary);
    out.untied |= one.untied;
  }
  return out;
}

base::Result<tuning::Changes> changes_for(const tune::Recipe& recipe, const Text* text, int64_t rows, bool trains) {
  TRY_ASSIGN(tuning::Changes out, changes_for(recipe.adapter_name_or_path));
  const bool new_adapter = trains && recipe.finetuning_type == "lora" && merged_adapters(recipe) == recipe.adapter_name_or_path.size();
  const tune::AdapterConfig fresh{.saved = saved_modules(recipe)};
  if (new_adapter) out.untied |= tuning::changes_for(fresh).untied;
  if (!recipe.extends_vocabulary() || !text) return out;
  const int64_t tokens = text->tokenizer->size();
  if (out.vocabulary > 0) {
    if (tokens <= out.vocabulary) return out;
    return base::fail(base::ErrorKind::kConfig,
                      fmt::format("add_tokens: the adapter's embedding has {} rows, and the tokenizer {} tokens", out.vocabulary, tokens))
        .with_hint("merge the adapter with phalanx-train export, and add the tokens to the merged model");
  }
  if (new_adapter && !(tune::is_saved(fresh, "model.embed_tokens.weight") && tune::is_saved(fresh, "lm_head.weight")))
    return base::fail(base::ErrorKind::kConfig, "additional_target lacks embed_tokens or lm_head: what new tokens learn would be lost")
        .with_hint("leave additional_target out, or name both");
  if (tokens > rows) out.vocabulary = (tokens + kRowsTogether - 1) / kRowsTogether * kRowsTogether;
  out.fresh = text->fresh;
  out.seed = static_cast<uint64_t>(recipe.seed);
  return out;
}

}  // namespace phalanx::engine::finetune
