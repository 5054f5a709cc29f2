#include "base/lz4.h"

#include <lz4.h>

#include "base/check.h"

namespace phalanx::base {

void lz4_compress(std::string_view bytes, std::string& out) {
  PHALANX_CHECK(bytes.size() <= kMostLz4Bytes);
  const size_t before = out.size();
  const auto size = static_cast<int>(bytes.size());
  out.resize(before + static_cast<size_t>(LZ4_compressBound(size)));
  const int written = LZ4_compress_default(bytes.data(), out.data() + before, size, static_cast<int>(out.size() - before));
  PHALANX_CHECK(written > 0);  // the room is enough for any bytes
  out.resize(before + static_cast<size_t>(written));
}

bool lz4_decompress(std::string_view block, size_t size, std::string& out) {
  if (size > kMostLz4Bytes || block.size() > static_cast<size_t>(LZ4_compressBound(kMostLz4Bytes))) return false;
  out.resize(size);
  const int read = LZ4_decompress_safe(block.data(), out.data(), static_cast<int>(block.size()), static_cast<int>(size));
  return read >= 0 && static_cast<size_t>(read) == size;
}

}  // namespace phalanx::base
