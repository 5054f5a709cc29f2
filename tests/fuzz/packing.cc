// Any bytes as a block of either format: as many bytes as were asked for, or a refusal; and any bytes, packed with any effort, come back.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/packing.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string out;
  const size_t wanted = size < 2 ? 0 : size_t{data[0]} << 8 | data[1];
  for (base::Packing packing : {base::Packing::kLz4, base::Packing::kDeflate})
    if (base::unpack(packing, bytes.substr(std::min<size_t>(size, 2)), wanted, out)) PHALANX_CHECK(out.size() == wanted);
  if (size > base::kMostPackedBytes) return 0;
  static base::Packer packer;
  for (base::Effort effort : {base::Effort::kLeast, base::Effort::kLittle, base::Effort::kMuch}) {
    std::string block;
    const base::Packing packing = packer.pack(bytes, effort, block);
    PHALANX_CHECK(base::unpack(packing, block, size, out) && out == bytes);
  }
  return 0;
}
