// gzip for what is compressed once, at build time, and carried in the launcher.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace phalanx::base {

// One member, as small as the build can make it: libdeflate's is 3 % smaller than zlib's best and as fast to unpack. Without libdeflate the
// launcher is that much larger, nothing else. Error kInternal: no memory.
Result<std::string> small_gzip(std::string_view text);

}  // namespace phalanx::base
