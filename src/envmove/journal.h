// What an interrupted rehoming meant to do. Written before the first change, removed after the last: while it lies there, files of the old
// and of the new place are mixed, and hashes in records may be those of either.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "envmove/rehome.h"

namespace phalanx::envmove {

struct Journal {
  Move move;
  std::vector<Change> changes;
};

// nullopt: there is none. Error kConfig: it belongs to another user, others may write it, or it cannot be understood.
base::Result<std::optional<Journal>> read_journal(const Environment& environment);
base::Status write_journal(const Environment& environment, const Journal& journal);

}  // namespace phalanx::envmove
