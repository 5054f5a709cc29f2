// Any bytes as a block of LZ4: as many bytes as were asked for, or a refusal; and any bytes, compressed, come back.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/lz4.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string out;
  const size_t wanted = size < 2 ? 0 : size_t{data[0]} << 8 | data[1];
  if (base::lz4_decompress(bytes.substr(std::min<size_t>(size, 2)), wanted, out)) PHALANX_CHECK(out.size() == wanted);
  if (size > base::kMostLz4Bytes) return 0;
  std::string block;
  base::lz4_compress(bytes, block);
  PHALANX_CHECK(base::lz4_decompress(block, size, out) && out == bytes);
  return 0;
}
