// Keys that configurations may have, to find misspelt ones.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace phalanx::doctor {

// Unions over versions: a key that any version knows is no misspelling.
std::vector<std::string> accelerate_keys();            // accelerate/commands/config/config_args.py: ClusterConfig
std::vector<std::string> accelerate_deepspeed_keys();  // its deepspeed_config section
std::vector<std::string> deepspeed_keys();             // deepspeed/runtime/constants.py and config.py, top level
std::vector<std::string> deepspeed_zero_keys();        // deepspeed/runtime/zero/config.py
std::vector<std::string> llamafactory_keys();          // its hparams and transformers' training arguments

// The first key of `object` that is not known but within a third of its length of one that is; and that one.
struct Misspelt {
  std::string key, meant;
};
std::vector<Misspelt> misspelt_keys(const base::Json& object, const std::vector<std::string>& known);

}  // namespace phalanx::doctor
