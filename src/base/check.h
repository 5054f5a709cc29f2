// PHALANX_CHECK is for bugs only: a broken promise between two pieces of our own code. It prints where and aborts; what comes
// from outside is never checked this way but turned into an Error.
#pragma once

namespace phalanx::base {
[[noreturn]] void check_failed(const char* file, int line, const char* condition);
}

#define PHALANX_CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) [[unlikely]] ::phalanx::base::check_failed(__FILE__, __LINE__, #condition); \
  } while (0)
