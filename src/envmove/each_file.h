// Work on many files at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.h"

namespace phalanx::envmove {

// Calls work(i) for every i below count, on a few threads; after a failure no new ones are begun. The error of the lowest i that failed.
inline base::Status each_of(size_t count, const std::function<base::Status(size_t)>& work) {
  constexpr size_t kMostThreads = 8, kWorthAThread = 16;
  std::atomic<size_t> next = 0;
  std::atomic<bool> stop = false;
  std::mutex mutex;
  std::optional<base::Error> failed;
  size_t failed_at = count;
  auto run = [&] {
    for (size_t i = next++; i < count && !stop; i = next++) {
      base::Status done = work(i);
      if (done.ok()) continue;
      stop = true;
      std::lock_guard lock(mutex);
      if (i < failed_at) failed_at = i, failed = std::move(done).error();
    }
  };
  std::vector<std::thread> threads;
  const size_t wanted = std::min({kMostThreads, size_t{std::max(1U, std::thread::hardware_concurrency())}, count / kWorthAThread + 1});
  for (size_t t = 1; t < wanted; ++t) threads.emplace_back(run);
  run();
  for (std::thread& thread : threads) thread.join();
  if (failed) return std::move(*failed);
  return base::ok();
}

}  // namespace phalanx::envmove
