// Which parameters of a model a recipe trains: adapters, some layers, or all of it.
#pragma once

#include <optional>

#include "base/result.h"
#include "engine/tuning/decoder/decoder.h"
#include "tune/adapter/adapter_config.h"
#include "tune/recipe/recipe.h"

namespace phalanx::engine::finetune {

// How many of adapter_name_or_path are merged into the model: the last one is trained further, unless a new one is to be.
size_t merged_adapters(const tune::Recipe& recipe);
// Of a new adapter: what is trained whole beside it. Rows that new tokens take, and the head that predicts them, would else be lost.
std::vector<std::string> saved_modules(const tune::Recipe& recipe);

// Gives the model its adapters (merging those), or lets the parameters require gradients. The adapter's
// description with finetuning_type lora. Error kConfig: a key names nothing of the model, with the names that it has; an adapter cannot be
// used.
base::Result<std::optional<tune::AdapterConfig>> choose_trained(tuning::Decoder& decoder, const tune::Recipe& recipe);

}  // namespace phalanx::engine::finetune
