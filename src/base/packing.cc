#include "base/packing.h"

#include <libdeflate.h>
#include <lz4.h>

#include <algorithm>

#include "base/check.h"

namespace phalanx::base {
namespace {

constexpr int kDeflateLevels[kEfforts] = {0, 1, 6};  // libdeflate's numbers; 0: LZ4

}  // namespace

void Packer::Free::operator()(libdeflate_compressor* one) const { libdeflate_free_compressor(one); }
Packer::Packer() = default;
Packer::~Packer() = default;

Packing Packer::pack(std::string_view bytes, Effort effort, std::string& out) {
  PHALANX_CHECK(bytes.size() <= kMostPackedBytes);
  const auto number = static_cast<size_t>(effort);
  const size_t before = out.size(),
               room = std::max<size_t>(LZ4_COMPRESSBOUND(bytes.size()), libdeflate_deflate_compress_bound(nullptr, bytes.size()));
  out.resize(before + room);
  size_t size = 0;
  if (kDeflateLevels[number] > 0) {
    if (!deflate_[number]) deflate_[number].reset(libdeflate_alloc_compressor(kDeflateLevels[number]));
    if (deflate_[number]) size = libdeflate_deflate_compress(deflate_[number].get(), bytes.data(), bytes.size(), out.data() + before, room);
  }
  const Packing packing = size > 0 ? Packing::kDeflate : Packing::kLz4;
  if (packing == Packing::kLz4)
    size = static_cast<size_t>(
        LZ4_compress_default(bytes.data(), out.data() + before, static_cast<int>(bytes.size()), static_cast<int>(room)));
  PHALANX_CHECK(size > 0);  // the room is enough for any bytes
  out.resize(before + size);
  return packing;
}

}  // namespace phalanx::base
