#include "base/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace base {
namespace {
constexpr int kGzip = 15 + 16;  // window bits; 16 more: a gzip header and trailer
constexpr int kMemory = 8;
constexpr size_t kStep = 256 << 10;
}  // namespace

Result<std::string> gzip(std::string_view text) {
  z_stream stream{};
  if (::deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return fail(ErrorKind::kInternal, "zlib cannot compress: no memory");
  std::string out;
  int state = Z_OK;
  while (state == Z_OK) {
    if (stream.avail_in == 0 && !text.empty()) {
      size_t some = std::min<size_t>(text.size(), std::numeric_limits<uInt>::max());
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
      stream.avail_in = static_cast<uInt>(some);
      text.remove_prefix(some);
    }
    size_t before = out.size();
    out.resize(before + kStep);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = kStep;
    state = ::deflate(&stream, text.empty() ? Z_FINISH : Z_NO_FLUSH);
    out.resize(before + kStep - stream.avail_out);
  }
  ::deflateEnd(&stream);
  if (state != Z_STREAM_END) return fail(ErrorKind::kInternal, "zlib cannot compress");
  return out;
}

}  // namespace base
