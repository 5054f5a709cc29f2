// Blocks of LZ4, for contents on their way to hosts: quicker than a network, where zlib is not, and small enough for the agent, where zstd
// is not. Blocks of up to kMostLz4Bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace phalanx::base {

inline constexpr size_t kMostLz4Bytes = 1 << 20;

// Appends the block. Bytes that do not repeat cost little time, and come out slightly longer.
void lz4_compress(std::string_view bytes, std::string& out);
// The `size` bytes that a block holds, in `out`, which they replace. False: it is malformed, or holds another number of bytes.
bool lz4_decompress(std::string_view block, size_t size, std::string& out);

}  // namespace phalanx::base
