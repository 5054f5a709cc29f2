// `phalanx fit` as text and as JSON: what a model needs on one rank under each way of training, and what fits. Pure.
#pragma once

#include <string>

#include "base/json.h"
#include "base/language.h"
#include "fit/memory.h"

namespace phalanx::view {

// What it is to fit into.
struct FitTarget {
  std::string gpu_name;    // "NVIDIA A100-SXM4-80GB"; empty: only a size was given
  int64_t gpu_bytes = 0;   // of the smallest GPU; 0: unknown, nothing is judged
  int64_t host_bytes = 0;  // memory of the smallest host; 0: unknown
};

std::string fit_text(const fit::Model& model, const fit::Training& training, const FitTarget& target, base::Language language);
// As docs/guides/fit.md describes it.
base::Json fit_json(const fit::Model& model, const fit::Training& training, const FitTarget& target);

}  // namespace phalanx::view
