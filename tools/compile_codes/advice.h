// codes/advice/*.tsv → the table behind src/codes/advice.h, compressed, as C++.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace phalanx::codes {

// Error (kConfig): words that are too short to tell one message from others, or that the row's own line does not contain; a row without a
// line, or without one of the languages; words that are there twice.
base::Result<std::string> compile_advice(const std::filesystem::path& folder);

}  // namespace phalanx::codes
