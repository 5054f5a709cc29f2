// One path, looked at: what it is, on which file system, how full that is, whether it takes a file. Every call here may hang on a dead
// server: only for use in a child (os/guarded.h).
#pragma once

#include <string>
#include <vector>

#include "machine/storage/facts.h"
#include "machine/storage/mounts.h"

namespace phalanx::machine {

// Fills everything but token, writable and write_ns. Links are followed to find the file system. root is put before the path and
// taken off again.
void look_at(const std::string& root, const std::vector<Mount>& mounts, PathFact& fact);

// The nearest folder at or above root + path, where a file would be made; without root. "/" at worst.
std::string nearest_folder(const std::string& root, const std::string& path);

struct WriteTest {
  bool done = false;
  std::string error;  // "create: Permission denied", "write: No space left on device"
  int64_t took_ns = 0;
};
// Makes ".phalanx-probe-XXXXXX" in `folder`, a name that nobody can foresee and take, writes 64 KiB, syncs. The file loses its name before
// the first byte is written, so that nothing stays behind even if this process is killed.
WriteTest try_write(const std::string& folder);

}  // namespace phalanx::machine
