#include "engine/comm/slow_notice.h"

#include <chrono>
#include <cstdio>

namespace phalanx::engine::comm {

SlowNotice::SlowNotice(std::string line) : thread_([this, line = std::move(line)] { watch(line); }) {}

SlowNotice::~SlowNotice() {
  {
    std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void SlowNotice::watch(const std::string& line) {
  std::unique_lock lock(mutex_);
  std::chrono::seconds wait{10};
  while (!ended_.wait_for(lock, wait, [this] { return end_; })) {
    std::fprintf(stderr, "%s\n", line.c_str());
    wait = std::chrono::seconds{60};
  }
}

}  // namespace phalanx::engine::comm
