// The vocabulary of a run: where its tokenizer lies, which tokens that gets, and how many rows the model needs for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/finetune/read_rows.h"
#include "engine/tuning/load_decoder.h"
#include "tune/recipe/recipe.h"
#include "words/message.h"

namespace phalanx::engine::finetune {

// The model's; or, if an adapter has an embedding of its own, as one that learned new tokens does, that of the newest adapter from it on
// that has a tokenizer.
base::Result<std::string> tokenizer_folder(const std::string& model, const std::vector<std::string>& adapters);

// Of each adapter that was trained on a model which others had been merged into, and that fewer come before: what to tell people.
base::Result<std::vector<words::Message>> notes_on_order(const std::vector<std::string>& adapters);

// What the model has to become for its adapters, one after another.
base::Result<tuning::Changes> changes_for(const std::vector<std::string>& adapters);
// The same, and for the tokens of a recipe. `text`: null where no tokenizer was read. `rows`: of the folder's embedding. `trains`: the
// recipe is for training, not for export. Error kConfig: what new tokens learn would be lost, or an adapter has no room for them.
base::Result<tuning::Changes> changes_for(const tune::Recipe& recipe, const Text* text, int64_t rows, bool trains);

}  // namespace phalanx::engine::finetune
