// How a step's sequences are shared: per rank and pass × ranks × passes = of all. Pure; needs no libtorch.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace phalanx::engine::data {

struct BatchShare {
  int64_t rows = 1;        // sequences that go through one rank's model at once
  int64_t world = 1;       // ranks
  int64_t accumulate = 1;  // passes a rank makes before the parameters change
  int64_t global() const { return rows * world * accumulate; }
  int64_t per_rank() const { return rows * accumulate; }
};

// Error (kConfig) when `global` is not a multiple of world × accumulate; the hint has the nearest values of `key` that are.
base::Result<BatchShare> share_batch(int64_t global, int64_t world, int64_t accumulate, const std::string& key = "train.batch");

// "batch: 4 sequences × 2 ranks × 3 passes = 24 sequences per step (6144 tokens)". tokens: of one sequence, 0 to leave them out.
std::string describe(const BatchShare& share, int64_t tokens);

}  // namespace phalanx::engine::data
