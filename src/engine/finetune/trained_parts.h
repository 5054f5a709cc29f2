// Which parameters of a model a recipe trains: adapters, some layers, or all of it.
#pragma once

#include <optional>

#include "base/result.h"
#include "engine/tuning/decoder/decoder.h"
#include "tune/adapter/adapter_config.h"
#include "tune/recipe/recipe.h"

namespace phalanx::engine::finetune {

// Gives the model its adapters (merging all but the last of adapter_name_or_path), or lets the parameters require gradients. The adapter's
// description with finetuning_type lora. Error kConfig: lora_target or freeze_trainable_modules names nothing of the model, with the names
// that it has; an adapter cannot be used.
base::Result<std::optional<tune::AdapterConfig>> choose_trained(tuning::Decoder& decoder, const tune::Recipe& recipe);

}  // namespace phalanx::engine::finetune
