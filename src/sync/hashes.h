// The hashes of what a scan has found: of a file that has not changed from the index of the last scan, the others by reading, on a few
// threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/fd.h"
#include "sync/scan.h"

namespace phalanx::sync {

// What says that a file is the one that was hashed.
struct Stamp {
  uint64_t size = 0, inode = 0;
  int64_t mtime_ns = 0, ctime_ns = 0;
  bool operator==(const Stamp&) const = default;
};

// stamps: one per entry. index: as in scan(). Fills scan.hashed and the contents. Error kUsage of the first file in the list that cannot be
// read; without a hint, where only the caller knows one.
base::Status hash_all(const std::string& root, const std::vector<Stamp>& stamps, const std::string& index, const Hashed& hashed,
                      Scan& scan);

// Below the root no step of a name may be a link, also one that was put there after the walk: what it leads to is not the user's who owns
// the directory that is copied. "/.": the root itself may be one.
base::Result<std::optional<os::Fd>> open_inside(const std::string& root, const std::string& path);

}  // namespace phalanx::sync
