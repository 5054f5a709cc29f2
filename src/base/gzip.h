// gzip (RFC 1952): made through libdeflate, read through zlib.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace phalanx::base {

enum class GzipLevel { kFast = 1, kUsual = 9, kSmallest = 12 };  // libdeflate's own numbers

// The text as one member. Error kInternal: no memory.
Result<std::string> gzip(std::string_view text, GzipLevel level = GzipLevel::kUsual);

// What one member holds. Error kUsage: it is damaged or incomplete, something follows it, or it holds more than `most` bytes. Error
// kInternal: zlib has no memory.
Result<std::string> gunzip(std::string_view packed, size_t most);

}  // namespace phalanx::base
