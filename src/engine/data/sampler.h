// Which samples each rank sees, in which order: the very indices of PyTorch's torch.utils.data.DistributedSampler, so that a
// run can be compared with, or moved from, a Python one. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace engine::data {

struct SamplerOptions {
  int64_t samples = 0;
  int world = 1;
  int rank = 0;
  bool shuffle = true;
  uint64_t seed = 0;       // the permutation is that of a torch generator seeded with seed + epoch
  bool drop_last = false;  // false: the first samples are repeated so that all ranks get equally many
};

// torch/utils/data/distributed.py. The samples of `rank` in `epoch`, in order.
std::vector<int64_t> distributed_indices(const SamplerOptions& options, int64_t epoch);
// How many there are, without making them.
int64_t distributed_count(const SamplerOptions& options);

}  // namespace engine::data
