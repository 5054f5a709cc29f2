// Records of hashes follow what was rewritten: pip's RECORD and conda's sha256_in_prefix. Only where the record held the hash of the old
// content: what had been changed by hand before stays reported as changed.
#pragma once

#include "base/result.h"
#include "envmove/rehome.h"

namespace phalanx::envmove {

// May be called again with the same changes: what is correct stays as it is.
base::Status correct_hashes(const Environment& environment, const std::vector<Change>& changes);

}  // namespace phalanx::envmove
