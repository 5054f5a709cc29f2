// codes/checks and codes/runs → the table of codes/code.h.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/result.h"

namespace phalanx::codes {

struct PageTable {
  std::string source;           // C++
  std::set<std::string> names;  // of all codes
};

// Error (kConfig): the file, and what is wrong with it: see codes/page.h; a page without its translation, a code with two pages, a name
// that is no code, a question where none is asked.
base::Result<PageTable> compile_pages(const std::filesystem::path& folder);

}  // namespace phalanx::codes
