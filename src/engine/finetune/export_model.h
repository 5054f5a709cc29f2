// `phalanx-train export`: adapters merged into a model, written as a folder that Hugging Face's libraries read.
#pragma once

#include "base/result.h"
#include "engine/finetune/bar.h"
#include "tune/recipe/recipe.h"

namespace phalanx::engine::finetune {

// Merges recipe.adapter_name_or_path, one after another, into recipe.model_name_or_path, and writes recipe.export_dir, which appears whole
// or not at all. Weights have the types of the model's files. Error kConfig: an input cannot be used, or something lies there already.
base::Status export_model(const tune::Recipe& recipe, Bar& bar);

}  // namespace phalanx::engine::finetune
