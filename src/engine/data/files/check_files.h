// The files of a set, one by one: each that cannot be read is named, not only the first, and files of the same content.
#pragma once

#include <string>
#include <vector>

#include "engine/data/findings.h"
#include "engine/data/open_set.h"

namespace phalanx::engine::data {

// The files that can be opened. Error (kConfig): the list names no files at all (find_files).
base::Result<std::vector<std::string>> check_files(const std::string& list, const SetOptions& options, Findings& findings);

}  // namespace phalanx::engine::data
