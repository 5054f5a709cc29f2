// gzip (RFC 1952), through zlib.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace base {

// The whole text as one member. Error kInternal: zlib has no memory.
Result<std::string> gzip(std::string_view text);

}  // namespace base
