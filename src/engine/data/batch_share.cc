#include "engine/data/batch_share.h"

#include <fmt/format.h>

#include "base/counted.h"

namespace phalanx::engine::data {

base::Result<BatchShare> share_batch(int64_t global, int64_t world, int64_t accumulate, const std::string& key) {
  if (global <= 0 || world <= 0 || accumulate <= 0)
    return base::fail(base::ErrorKind::kConfig,
                      base::counted("{} rows cannot be divided among {} ranks × {} parts", global, world, accumulate))
        .because("each of the three must be at least 1");
  const int64_t parts = world * accumulate;
  if (global % parts == 0) return BatchShare{global / parts, world, accumulate};
  const int64_t below = global / parts * parts, above = below + parts;
  std::string hint = fmt::format("{}={}", key, above);
  if (below > 0) hint += fmt::format(" or {}={}", key, below);
  return base::fail(base::ErrorKind::kConfig, fmt::format("{} {} cannot be divided equally", key, global))
      .because(base::counted("{} ranks × train.accumulate {} make {} parts", world, accumulate, parts))
      .with_hint(std::move(hint));
}

std::string describe(const BatchShare& share, int64_t tokens) {
  auto sequences = [](int64_t number) { return base::counted("{} sequences", number); };
  const std::string rows = sequences(share.rows), ranks = base::counted("{} ranks", share.world),
                    passes = base::counted("{} passes", share.accumulate), all = sequences(share.global());
  if (tokens <= 0) return fmt::format("batch: {} × {} × {} = {} per step", rows, ranks, passes, all);
  return base::counted("batch: {} × {} × {} = {} per step ({} tokens)", rows, ranks, passes, all, share.global() * tokens);
}

}  // namespace phalanx::engine::data
