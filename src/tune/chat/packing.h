// Which examples share a sequence. Source: hiyouga/LLaMA-Factory v0.9.3, src/llamafactory/data/processor/processor_utils.py
// (greedy_knapsack) and supervised.py; for the groups: datasets' map with num_proc, which cuts into contiguous shards.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace phalanx::tune {

// Only examples of a group are packed together: at most `size` neighbours of one of `parts` parts of the data. Each is [first, second).
std::vector<std::pair<size_t, size_t>> packing_groups(size_t examples, int64_t parts, int64_t size);

// Indexes of `lengths` by sequence, none of which is longer than `capacity`: the longest that fits comes next. Lengths that are 0 or do not
// fit at all are left out.
std::vector<std::vector<size_t>> pack(const std::vector<int64_t>& lengths, int64_t capacity);

}  // namespace phalanx::tune
