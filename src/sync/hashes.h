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

// stamps: one per entry. index: as in scan(). unsettled_s: as in ScanLimits. Fills scan.hashed and the contents. Error kUsage of the first
// file in the list that cannot be read; without a hint, where only the caller knows one.
base::Status hash_all(const std::string& root, const std::vector<Stamp>& stamps, const std::string& index, int64_t unsettled_s,
                      const Hashed& hashed, Scan& scan);

// Opens files of a folder. Below the root no step of a name may be a link, also one that was put there after the walk: what it leads to is
// not the user's who owns the directory that is copied. The root itself may be one. Files of one folder come one after the other, so the
// last folder stays open.
class Inside {
 public:
  explicit Inside(std::string root) : root_(std::move(root)) {}
  const std::string& root() const { return root_; }
  // Nothing: no regular file lies there now. Error: with errno, of the step that failed.
  base::Result<std::optional<os::Fd>> open(const std::string& path);

 private:
  std::string root_, folder_;
  os::Fd top_, at_;
};

}  // namespace phalanx::sync
