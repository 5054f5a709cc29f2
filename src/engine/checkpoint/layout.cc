#include "engine/checkpoint/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/unicode.h"

namespace phalanx::engine::checkpoint {
namespace {

base::Error bad(std::string why) { return base::fail(base::ErrorKind::kConfig, std::move(why)); }

std::string describe(std::string_view dtype, const std::vector<int64_t>& shape) {
  return fmt::format("{} [{}]", dtype, fmt::join(shape, ", "));
}

}  // namespace

base::Status Layout::add(const PieceRecord& piece, int file, uint64_t offset) {
  auto [place, fresh] = tensors_.try_emplace(piece.tensor.name);
  Extent& extent = place->second;
  if (fresh) {
    extent = {piece.tensor.dtype, piece.tensor.shape, elements(piece.tensor.shape), {}};
  } else if (extent.dtype != piece.tensor.dtype || extent.shape != piece.tensor.shape) {
    return bad(fmt::format("tensor {} is {} on rank {}, but {} on an earlier rank", base::quote(piece.tensor.name),
                           describe(piece.tensor.dtype, piece.tensor.shape), file, describe(extent.dtype, extent.shape)));
  }
  if (piece.count > 0) extent.runs.push_back({piece.begin, piece.count, file, offset});
  return base::ok();
}

base::Status Layout::complete() {
  for (auto& [name, extent] : tensors_) {
    std::sort(extent.runs.begin(), extent.runs.end(), [](const Run& a, const Run& b) { return a.begin < b.begin; });
    int64_t expected = 0;
    const Run* before = nullptr;
    for (const Run& run : extent.runs) {
      if (run.begin > expected)
        return bad(fmt::format("tensor {}: no shard contains elements {} to {}", base::quote(name), expected, run.begin));
      if (run.begin < expected)
        return bad(fmt::format("tensor {}: elements {} to {} are in the shards of both rank {} and rank {}", base::quote(name), run.begin,
                               std::min(expected, run.begin + run.count), before->file, run.file));
      expected = run.begin + run.count;
      before = &run;
    }
    if (expected != extent.count)
      return bad(fmt::format("tensor {}: no shard contains elements {} to {}", base::quote(name), expected, extent.count));
  }
  return base::ok();
}

}  // namespace phalanx::engine::checkpoint
