// codes/catalogue/*.tsv → the table behind src/codes/catalogue.h, compressed, as C++.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace phalanx::codes {

base::Result<std::string> compile_catalogue(const std::filesystem::path& folder);

}  // namespace phalanx::codes
