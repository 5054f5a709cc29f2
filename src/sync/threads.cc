#include "sync/threads.h"

#include <pthread.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace phalanx::sync {

void on_threads(size_t wanted, const std::function<void()>& work) {
  // Not std::thread: where the user may have no more threads, it ends the program.
  auto run = [](void* own) -> void* {
    (*static_cast<const std::function<void()>*>(own))();
    return nullptr;
  };
  std::vector<pthread_t> threads;
  void* own = const_cast<std::function<void()>*>(&work);
  for (pthread_t thread; threads.size() + 1 < wanted && ::pthread_create(&thread, nullptr, run, own) == 0;) threads.push_back(thread);
  work();
  for (pthread_t thread : threads) ::pthread_join(thread, nullptr);
}

size_t most_threads() { return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 8); }

}  // namespace phalanx::sync
