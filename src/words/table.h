// The compiled catalogue of Chinese texts. tools/compile_words packs words/zh-CN/ into one gzip member, which is unpacked when the first
// Chinese text is asked for: an English session reads none of it.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace phalanx::words {

struct Table {
  std::vector<std::string_view> english;  // sorted by bytes, each once
  std::vector<std::string_view> chinese;  // of the English at the same place
};

// Valid until the process ends.
const Table& table();

// Generated: the member, and the bytes it holds: the English of all entries, then the Chinese, each with a zero behind it.
struct PackedTable {
  std::string_view member;
  size_t size;
};
PackedTable packed_table();

}  // namespace phalanx::words
