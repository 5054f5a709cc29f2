// The compiled catalogue. tools/compile_words makes its source from words/zh-CN/.
#pragma once

#include <span>

namespace phalanx::words {

struct Entry {
  const char* english;
  const char* chinese;
};

// Sorted by the English bytes, each once.
std::span<const Entry> table();

}  // namespace phalanx::words
