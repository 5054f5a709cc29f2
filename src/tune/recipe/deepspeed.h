// DeepSpeed's configuration, as the key `deepspeed` of a recipe gives it: what is honoured of it, what has no meaning here, what is
// refused. Source: DeepSpeed's page "Configuration JSON"; "auto" means what src/transformers/integrations/deepspeed.py makes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace phalanx::tune {

struct Recipe;
struct GivenKey;

struct DeepSpeed {
  int stage = 0;  // of ZeRO
  // Stage 3: parameters of fewer elements stay whole on every rank. None ("auto"): 10 times the model's width.
  std::optional<int64_t> persistent_elements;
  bool prefetch = true;                       // stage 3: the next part's parameters are gathered while one works
  std::optional<int64_t> bucket_elements;     // stages 0 to 2: gradients that are reduced together, at most
  bool offload = false;                       // on GPUs: the optimizer's states in the host's memory
  std::optional<int64_t> batch_of_all_ranks;  // what the recipe must come to, in sequences a step
};

// `given` gets every key as "deepspeed.zero_optimization.stage". Error kConfig lists every problem: keys that are unknown or refused,
// values that cannot be, or that the recipe has otherwise.
base::Result<DeepSpeed> read_deepspeed(const base::Json& config, const Recipe& recipe, std::vector<GivenKey>* given);

}  // namespace phalanx::tune
