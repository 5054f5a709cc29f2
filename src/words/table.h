// The compiled catalogue. tools/compile_words makes its source from words/zh-CN/. The Chinese is one block of bytes: an offset is half of a
// pointer, and the English texts are those of the sources, which the linker keeps once.
#pragma once

#include <cstdint>
#include <span>

namespace phalanx::words {

struct Table {
  std::span<const char* const> english;  // sorted by bytes, each once
  std::span<const uint32_t> offsets;     // where the Chinese of each begins
  const char* chinese;                   // all of it, each text ended by a zero
};

Table table();

}  // namespace phalanx::words
