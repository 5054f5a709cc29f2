// The permutation by which the datasets library sets records aside: numpy's default_rng(seed).permutation(n).
// Source: numpy 1.24: SeedSequence, PCG64 (XSL-RR), random_interval, and Generator.shuffle.
#pragma once

#include <cstdint>
#include <vector>

namespace phalanx::tune {

// n below 2^32.
std::vector<int64_t> numpy_permutation(uint64_t seed, int64_t n);

}  // namespace phalanx::tune
