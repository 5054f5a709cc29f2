#include "engine/data/plan/sampler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randperm.h>

#include <algorithm>

#include "engine/require.h"

namespace phalanx::engine::data {

int64_t distributed_count(const SamplerOptions& options) {
  // PyTorch's ceil((n - world) / world) when n is not a multiple is n / world rounded down.
  const int64_t n = options.samples, world = options.world;
  return options.drop_last ? n / world : (n + world - 1) / world;
}

std::vector<int64_t> epoch_order(int64_t samples, uint64_t seed, int64_t epoch) {
  at::Generator generator = at::detail::createCPUGenerator();
  generator.set_current_seed(seed + static_cast<uint64_t>(epoch));
  at::Tensor shuffled = at::randperm(samples, generator, at::TensorOptions().dtype(at::kLong));
  return {shuffled.data_ptr<int64_t>(), shuffled.data_ptr<int64_t>() + samples};
}

std::vector<int64_t> distributed_indices(const SamplerOptions& options, int64_t epoch) {
  require(options.rank >= 0 && options.rank < options.world, "rank {} is out of range for {} ranks", options.rank, options.world);
  require(options.samples >= 0, "a dataset cannot have {} samples", options.samples);
  std::vector<int64_t> order;
  if (options.shuffle) order = epoch_order(options.samples, options.seed, epoch);
  std::vector<int64_t> mine;
  if (options.samples == 0) return mine;
  const int64_t count = distributed_count(options);
  mine.reserve(static_cast<size_t>(count));
  // Places past the end repeat from the start, as often as it takes (more ranks than samples).
  for (int64_t place = options.rank; place < count * options.world; place += options.world) {
    const int64_t index = place % options.samples;
    mine.push_back(options.shuffle ? order[static_cast<size_t>(index)] : index);
  }
  return mine;
}

std::vector<std::vector<int64_t>> distributed_batches(const SamplerOptions& options, int64_t epoch, int64_t rows, bool drop_last) {
  require(rows > 0, "a batch cannot have {} rows", rows);
  const std::vector<int64_t> mine = distributed_indices(options, epoch);
  std::vector<std::vector<int64_t>> batches;
  const auto size = static_cast<size_t>(rows);
  for (size_t at = 0; at < mine.size(); at += size) {
    const size_t many = std::min(size, mine.size() - at);
    if (many < size && drop_last) break;
    batches.emplace_back(mine.begin() + static_cast<std::ptrdiff_t>(at), mine.begin() + static_cast<std::ptrdiff_t>(at + many));
  }
  return batches;
}

int64_t distributed_batch_count(const SamplerOptions& options, int64_t rows, bool drop_last) {
  const int64_t count = distributed_count(options);
  return drop_last ? count / rows : (count + rows - 1) / rows;
}

}  // namespace phalanx::engine::data
