#include "base/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/try.h"

namespace phalanx::base {
namespace {
constexpr int kGzip = 15 + 16;  // window bits; 16 more: a gzip header and trailer
constexpr int kMemory = 8;
constexpr size_t kStep = 256 << 10;
}  // namespace

GzipStream::GzipStream(Level level) : stream_(std::make_unique<z_stream>()) {
  *stream_ = {};
  if (::deflateInit2(stream_.get(), static_cast<int>(level), Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) stream_.reset();
}

GzipStream::~GzipStream() {
  if (stream_) ::deflateEnd(stream_.get());
}

Status GzipStream::feed(std::string_view text, bool last, std::string& out) {
  if (!stream_) return fail(ErrorKind::kInternal, "zlib cannot compress: no memory");
  z_stream& stream = *stream_;
  for (;;) {
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
    int state = ::deflate(&stream, last && text.empty() ? Z_FINISH : Z_NO_FLUSH);
    out.resize(before + kStep - stream.avail_out);
    if (state == Z_STREAM_END) return ok();
    // Z_BUF_ERROR: nothing was left to do, which is no error while more text may come.
    if (state != Z_OK && state != Z_BUF_ERROR) return fail(ErrorKind::kInternal, "zlib cannot compress");
    if (!last && text.empty() && stream.avail_in == 0 && stream.avail_out > 0) return ok();
  }
}

Result<std::string> gzip(std::string_view text) {
  std::string out;
  TRY(GzipStream(GzipStream::Level::kSmall).feed(text, true, out));
  return out;
}

}  // namespace phalanx::base
