#include "engine/data/sampler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randperm.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace engine::data {

int64_t distributed_count(const SamplerOptions& options) {
  // PyTorch's ceil((n - world) / world) when n is not a multiple is n / world rounded down.
  const int64_t n = options.samples, world = options.world;
  return options.drop_last ? n / world : (n + world - 1) / world;
}

std::vector<int64_t> distributed_indices(const SamplerOptions& options, int64_t epoch) {
  CHECK(options.world > 0 && options.rank >= 0 && options.rank < options.world && options.samples >= 0);
  std::vector<int64_t> order(static_cast<size_t>(options.samples));
  if (options.shuffle) {
    at::Generator generator = at::detail::createCPUGenerator();
    generator.set_current_seed(options.seed + static_cast<uint64_t>(epoch));
    at::Tensor shuffled = at::randperm(options.samples, generator, at::TensorOptions().dtype(at::kLong));
    std::copy_n(shuffled.data_ptr<int64_t>(), order.size(), order.begin());
  } else {
    std::iota(order.begin(), order.end(), 0);
  }
  const int64_t count = distributed_count(options);
  std::vector<int64_t> mine;
  if (order.empty()) return mine;
  mine.reserve(static_cast<size_t>(count));
  // Places past the end repeat from the start, as often as it takes (more ranks than samples).
  for (int64_t place = options.rank; place < count * options.world; place += options.world)
    mine.push_back(order[static_cast<size_t>(place % options.samples)]);
  return mine;
}

}  // namespace engine::data
