// Text → a gzip member as C++, for src/codes/packed.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::codes {

// The definition of packed_<name>(). Error (kInternal): zlib has no memory.
base::Result<std::string> packed_source(std::string_view name, std::string_view text);

// One row: cells joined by tabs. Error (kConfig): a cell holds a tab or a line end.
base::Result<std::string> packed_row(const std::vector<std::string>& cells);

}  // namespace phalanx::codes
