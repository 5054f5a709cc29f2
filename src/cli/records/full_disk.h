// What to say where the disk of a run's files is full: which file system that is, where it is mounted, and how to see what fills it.
#pragma once

#include <string>

#include "base/result.h"

namespace phalanx::cli {

// The error of a run whose folder could not be made in `folder`. If the file system is full or has no inode left, its cause says so with
// the numbers, and its hint shows what fills it. Asks the file system: only before anything runs.
base::Error with_disk(base::Error error, const std::string& folder);

// A warning of the process that writes the logs; one about a full disk also names the file system, and the command that shows what fills
// it.
std::string warning_with_disk(const std::string& warning, const std::string& folder);

}  // namespace phalanx::cli
