#include "base/gzip.h"

#include <libdeflate.h>
#include <zlib.h>

#include <memory>

namespace phalanx::base {

Result<std::string> gzip(std::string_view text, GzipLevel level) {
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> deflate(
      libdeflate_alloc_compressor(static_cast<int>(level)), libdeflate_free_compressor);
  if (!deflate) return fail(ErrorKind::kInternal, "libdeflate cannot compress: no memory");
  // RFC 1952: no name, no time, from Unix. libdeflate would write this too, with 13 kB for a second CRC-32.
  std::string out("\x1f\x8b\x08\0\0\0\0\0\0\3", 10);
  const size_t head = out.size();
  out.resize(head + libdeflate_deflate_compress_bound(deflate.get(), text.size()));
  const size_t size = libdeflate_deflate_compress(deflate.get(), text.data(), text.size(), out.data() + head, out.size() - head);
  if (size == 0) return fail(ErrorKind::kInternal, "libdeflate cannot compress");
  out.resize(head + size);
  for (const size_t number : {::crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()), text.size()})
    for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(number >> shift);
  return out;
}

}  // namespace phalanx::base
