// Whether the ranks of a run can write one checkpoint together.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/comm/group.h"

namespace phalanx::engine::checkpoint {

// A token for this attempt's saves, equal on every rank (folder.h). Collective.
std::string common_token(comm::Group& group);

// Every rank writes a small file into `folder` (created), rank 0 looks for all of them, and they are removed again. Collective; every
// rank gets an Error if any does. Error: kUnfit, naming the ranks whose files rank 0 does not see: the folder is not on a disk
// that all hosts share; or a rank's own error when it cannot write there.
base::Status require_shared(comm::Group& group, const std::string& folder, std::string_view token);

}  // namespace phalanx::engine::checkpoint
