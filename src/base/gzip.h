// gzip (RFC 1952), through zlib.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct z_stream_s;

namespace phalanx::base {

// One member, piece by piece.
class GzipStream {
 public:
  enum class Level { kFast = 1, kSmall = 9 };  // zlib's own numbers
  explicit GzipStream(Level level);
  ~GzipStream();
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  // Appends what has been compressed so far to `out`; everything once `last` was given. Error kInternal: zlib has no memory.
  Status feed(std::string_view text, bool last, std::string& out);

 private:
  std::unique_ptr<z_stream_s> stream_;  // none: zlib had no memory
};

// The whole text as one member, as small as gzip can make it. Error kInternal: zlib has no memory.
Result<std::string> gzip(std::string_view text);

// What one member holds. Error kUsage: it is damaged or incomplete, something follows it, or it holds more than `most` bytes. Error
// kInternal: zlib has no memory.
Result<std::string> gunzip(std::string_view packed, size_t most);

}  // namespace phalanx::base
