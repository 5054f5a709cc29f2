#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/gzip.h"

namespace phalanx::base {
namespace {
constexpr int kGzip = 15 + 16;  // window bits; 16 more: a gzip header and trailer
}  // namespace

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
