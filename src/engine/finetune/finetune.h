// `phalanx-train recipe.yaml key=value …` with a LLaMA-Factory YAML: from the file to the tuned folder.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tune/recipe/recipe.h"

namespace phalanx::engine::finetune {

struct Command {
  std::string path;  // of the YAML, for errors
  std::string yaml;
  std::vector<std::string> overrides;  // key=value
};

// The recipe with what its deepspeed file says. Error kConfig lists every problem.
base::Result<tune::ReadRecipe> read_whole(const Command& command);

// Whether a YAML is of that dialect: it has model_name_or_path at the top.
bool is_recipe(std::string_view yaml);

// With `explain`: prints what becomes of every key, 0. Else trains, with this process's environment as its rank's: 0, or 128 + the signal
// that stopped the run after a step and a saved checkpoint. Exceptions of torch end here and become an Error (kJobFailed).
base::Result<int> run_command(const Command& command, bool explain);

// `export`, `generate`, `chat`, `keys`, and --check-data with a recipe: the exit code if the first argument is one of them, nullopt if it
// is not.
std::optional<base::Result<int>> run_verb(const std::vector<std::string>& arguments);
std::string help();  // lines for --help

}  // namespace phalanx::engine::finetune
