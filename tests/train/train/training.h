// Whole trainings in one process, small enough for a test.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/checkpoint/owner.h"
#include "engine/train/config.h"
#include "ranks.h"

namespace phalanx::ranks {

// A small config on a corpus of golden_text, as YAML; arguments win over it.
engine::train::Config small_config(const TempFolder& folder, const std::vector<std::string>& arguments = {});

// What a whole training left behind.
struct Outcome {
  std::map<int64_t, double> loss;                        // step -> loss
  std::map<int64_t, double> grad_norm;                   // step -> norm
  std::map<std::string, std::vector<float>> parameters;  // whole, from all ranks' slices
  std::vector<std::string> errors;                       // of any rank, rendered
};
Outcome train(const engine::train::Config& config, int world, const engine::checkpoint::Attempt& attempt = {});

}  // namespace phalanx::ranks
