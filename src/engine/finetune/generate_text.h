// `phalanx-train generate`: text that a model continues, or its answer in the form of its chat template.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "engine/tuning/generate.h"

namespace phalanx::engine::finetune {

struct TextRequest {
  std::string model;                         // a folder
  std::optional<std::string> adapter;        // a folder of PEFT's kind
  std::optional<std::string> chat_template;  // "none": the prompt is continued as it is; without: what the folders say
  std::optional<std::string> system;
  std::string prompt;
  tuning::GenerateOptions options;  // its stops and progress are set here
};

// Prints the answer to stdout while it comes, and which template was used to stderr. Error kConfig: the model or the adapter cannot be
// used, the prompt does not fit into the model's context, or the folder has no tokenizer.
base::Status generate_text(TextRequest request);

}  // namespace phalanx::engine::finetune
