// The data of a recipe as rows of ids and labels, all of it read and checked before the first step.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/finetune/bar.h"
#include "engine/finetune/pack_rows.h"
#include "engine/tuning/fine_tuning.h"
#include "tune/chat/template.h"
#include "tune/recipe/recipe.h"
#include "tune/tokenizer/tokenizer.h"

namespace phalanx::engine::finetune {

// Beside tuned weights: {"template", "default_system", "enable_thinking"}, as the recipe had them; "merged_adapters": folders, if some had
// been merged into the model.
inline constexpr const char* kTemplateFile = "phalanx_template.json";

// What a model's folder says of text. Pointers into it stay good when it is moved.
struct Text {
  std::unique_ptr<tune::Tokenizer> tokenizer;
  tune::SpecialTokens special;
  std::unique_ptr<tune::ChatEncoder> chat;  // of the recipe's template; null with stage pt and none
  PretrainTokens tokens;                    // after the template's changes
  std::string about;                        // kTemplateFile: what generating text needs to know of it
  std::string folder;                       // of the tokenizer's files
  std::string json;                         // tokenizer.json, if the recipe added tokens to it; else empty
  std::vector<tune::AddedToken> added;      // these
  std::vector<int32_t> fresh;               // the ids among them that no token had
};
// tokenizer.json with the recipe's tokens, tokenizer_config.json and the recipe's template. Error kConfig: one of them is missing,
// malformed or does not fit.
base::Result<Text> read_text(const tune::Recipe& recipe, const std::string& folder);

struct RowsRead {
  std::vector<tuning::TuningRow> rows;
  std::vector<tuning::TuningRow> evaluated;  // of eval_dataset, or set aside by val_size
  int64_t dropped = 0;  // records that LLaMA-Factory leaves out too: no answer, roles that do not alternate, too long to be packed
  int64_t tokens = 0, learned = 0;
};
// `vocabulary`: rows of the model's embedding. `text`: null where the recipe has a tokenized_path. Error kConfig names the file, the record
// (from 0) and its line: malformed JSON, a column of a wrong type, an id or a label outside the vocabulary.
base::Result<RowsRead> read_rows(const tune::Recipe& recipe, const Text* text, int64_t vocabulary, Bar& bar);

}  // namespace phalanx::engine::finetune
