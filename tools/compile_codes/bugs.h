// codes/bugs/*.tsv → the table behind src/codes/known_bug.h, compressed, as C++.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace phalanx::codes {

// Error (kConfig): a row without a version, a trigger of which a part is too short to look for, or no source on the web.
base::Result<std::string> compile_bugs(const std::filesystem::path& folder);

}  // namespace phalanx::codes
