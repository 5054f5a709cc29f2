// A few threads for what waits for a disk, or hashes.
#pragma once

#include <cstddef>
#include <functional>

namespace phalanx::sync {

// Calls `work` once on this thread and on each of up to `wanted` - 1 others, as many as the user may have; returns when all have returned.
void on_threads(size_t wanted, const std::function<void()>& work);
// As many as there are processors, at most eight.
size_t most_threads();

}  // namespace phalanx::sync
