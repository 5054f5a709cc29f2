// codes/annotations/*.tsv → rows of signatures: what messages of the catalogue mean.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/result.h"

namespace phalanx::codes {

// Packed rows, as compile_signatures makes them; `others` gets a line for each that must not match. `names`: the codes that have a page.
// Error (kConfig): the catalogue has no message with an annotation's words, which can happen after a new run of the generator, or its
// example does not contain them.
base::Result<std::string> annotation_rows(const std::filesystem::path& annotations, const std::filesystem::path& catalogue,
                                          const std::set<std::string>& names, std::string& others);

}  // namespace phalanx::codes
