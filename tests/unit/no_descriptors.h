// While it lives, this process gets no further descriptor: RLIMIT_NOFILE is lowered to the ones that are in use.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>

class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &old_), 0);
    rlimit none = old_;
    int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    none.rlim_cur = static_cast<rlim_t>(next);
    ::close(next);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    EXPECT_LT(::open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &old_), 0); }

 private:
  rlimit old_{};
};

// How often a loop wakes up within 300 ms.
template <typename Loop>
int wakeups(Loop& loop) {
  int count = 0;
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  for (auto now = std::chrono::steady_clock::now(); now < end; now = std::chrono::steady_clock::now(), ++count)
    loop.poll(std::chrono::duration_cast<std::chrono::milliseconds>(end - now) + std::chrono::milliseconds(1));
  return count;
}
