// CHECK is for bugs only: a broken promise between two pieces of our own code. It prints where and aborts; what comes
// from outside is never CHECKed but turned into an Error.
#pragma once

namespace base {
[[noreturn]] void check_failed(const char* file, int line, const char* condition);
}

#undef CHECK  // glog, which comes with libtorch's headers, has one of the same name
#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) [[unlikely]] ::base::check_failed(__FILE__, __LINE__, #condition); \
  } while (0)
