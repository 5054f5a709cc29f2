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
