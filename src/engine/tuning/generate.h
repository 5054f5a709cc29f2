// Text that a Decoder continues, one token at a time, with the keys and values of the tokens before kept.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/tuning/decoder/decoder.h"

namespace phalanx::engine::tuning {

struct GenerateOptions {
  int64_t max_new_tokens = 1024;
  double temperature = 0;         // 0: always the most likely token
  int64_t top_k = 50;             // of those the most likely ones; 0: all
  double top_p = 1;               // the fewest most likely ones whose probabilities reach this together
  double repetition_penalty = 1;  // logits of tokens that were there before are divided by it, negative ones multiplied
  uint64_t seed = 42;
  std::vector<int64_t> stops{};                                        // ends at the first of these, which is part of the answer
  std::function<bool(const std::vector<int64_t>& answer)> progress{};  // after every token; false ends the answer
};

// What follows `prompt`, which must not be empty.
std::vector<int64_t> generate(Decoder& decoder, const std::vector<int64_t>& prompt, const GenerateOptions& options);

}  // namespace phalanx::engine::tuning
