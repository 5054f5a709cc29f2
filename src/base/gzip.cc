#include "base/gzip.h"

#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>


namespace phalanx::base {
namespace {
constexpr int kGzip = 15 + 16;  // window bits; 16 more: a gzip header and trailer
}  // namespace

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

Result<std::string> gunzip(std::string_view packed, size_t most) {
  constexpr const char* kDamaged = "the compressed bytes are damaged or too many";
  constexpr size_t kMost = std::numeric_limits<uInt>::max();
  if (packed.size() > kMost || most >= kMost) return fail(ErrorKind::kUsage, kDamaged);
  z_stream stream{};
  if (::inflateInit2(&stream, kGzip) != Z_OK) return fail(ErrorKind::kInternal, "zlib cannot decompress: no memory");
  std::string out(most + 1, '\0');  // one more: that a member holds too much shows in it
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool whole = ::inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_in == 0 && stream.total_out <= most;
  out.resize(std::min<size_t>(stream.total_out, most));
  ::inflateEnd(&stream);
  if (!whole) return fail(ErrorKind::kUsage, kDamaged);
  return out;
}

}  // namespace phalanx::base
