// Speaks up while something takes long, so that no wait is silent.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace phalanx::engine::comm {

// From its making to its end: after 10 s, and then every 60 s, writes `line` to stderr. A thread of its own, because the wait
// is inside a library.
class SlowNotice {
 public:
  explicit SlowNotice(std::string line);
  ~SlowNotice();

 private:
  void watch(const std::string& line);
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace phalanx::engine::comm
