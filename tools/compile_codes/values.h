// codes/values/*.tsv → the tables behind src/codes/values.h, compressed, as C++.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/result.h"

namespace phalanx::codes {

// `names`: the codes that have a page.
base::Result<std::string> compile_values(const std::filesystem::path& folder, const std::set<std::string>& names);

}  // namespace phalanx::codes
