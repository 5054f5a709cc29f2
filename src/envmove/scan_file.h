// Files read for the plan: only those that hold an old prefix are read as a whole.
#pragma once

#include <string>

#include "base/result.h"
#include "envmove/rewrite.h"
#include "os/fd.h"

namespace phalanx::envmove {

inline constexpr size_t kMostRewrittenBytes = size_t{4} << 30;

struct Scanned {
  FileClass file_class = FileClass::kText;
  bool holds_old_prefix = false;
};
// Reads in pieces, whatever the size. wide: looks for UTF-16 and UTF-32 as well.
// file: open, from its beginning; path: for messages.
base::Result<Scanned> scan_file(const os::Fd& file, const std::string& path, std::string_view name, const Managed* managed,
                                const Move& move);

}  // namespace phalanx::envmove
