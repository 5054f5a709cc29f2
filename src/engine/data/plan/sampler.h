// Which samples each rank sees, in which order: the very indices of PyTorch's torch.utils.data.DistributedSampler, so that a
// run can be compared with, or moved from, a Python one. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace phalanx::engine::data {

struct SamplerOptions {
  int64_t samples = 0;
  int world = 1;
  int rank = 0;
  bool shuffle = true;
  uint64_t seed = 0;       // the permutation is that of a torch generator seeded with seed + epoch
  bool drop_last = false;  // false: the first samples are repeated so that all ranks get equally many
};

// The order of all samples in `epoch`, before the ranks share them. 8 bytes per sample.
std::vector<int64_t> epoch_order(int64_t samples, uint64_t seed, int64_t epoch);

// torch/utils/data/distributed.py. The samples of `rank` in `epoch`, in order.
std::vector<int64_t> distributed_indices(const SamplerOptions& options, int64_t epoch);
// How many there are, without making them.
int64_t distributed_count(const SamplerOptions& options);

// torch.utils.data.BatchSampler over distributed_indices: batches of `rows`, the last one shorter, or left out with drop_last.
// It drops what is left of this rank's samples; options.drop_last drops what is left of all.
std::vector<std::vector<int64_t>> distributed_batches(const SamplerOptions& options, int64_t epoch, int64_t rows, bool drop_last);
int64_t distributed_batch_count(const SamplerOptions& options, int64_t rows, bool drop_last);

}  // namespace phalanx::engine::data
