#include <libdeflate.h>
#include <lz4.h>

#include "base/packing.h"

namespace phalanx::base {
namespace {

bool unpack_lz4(std::string_view block, std::string& out) {
  const int read = LZ4_decompress_safe(block.data(), out.data(), static_cast<int>(block.size()), static_cast<int>(out.size()));
  return read >= 0 && static_cast<size_t>(read) == out.size();
}

bool inflate(std::string_view block, std::string& out) {
  libdeflate_decompressor* one = libdeflate_alloc_decompressor();
  if (!one) return false;
  size_t read = 0;
  const bool whole =
      libdeflate_deflate_decompress_ex(one, block.data(), block.size(), out.data(), out.size(), &read, nullptr) == LIBDEFLATE_SUCCESS;
  libdeflate_free_decompressor(one);
  return whole && read == block.size();
}

}  // namespace

bool unpack(Packing packing, std::string_view block, size_t size, std::string& out) {
  if (size > kMostPackedBytes || block.size() > 2 * kMostPackedBytes) return false;
  out.resize(size);
  return packing == Packing::kLz4 ? unpack_lz4(block, out) : inflate(block, out);
}

}  // namespace phalanx::base
