// codes/signatures/*.yaml → the table of codes/signature.h.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/result.h"
#include "compile_codes/annotations.h"

namespace phalanx::codes {

// A C++ source. annotations: those that are signatures are among the rows. names: the codes that have a page. Error (kConfig): file and row
// that lack a key, have one too many, name a role or code that does not exist, or whose literal is shorter than the first pass can use.
base::Result<std::string> compile_signatures(const std::filesystem::path& folder, const AnnotatedSources& annotations,
                                             const std::set<std::string>& names);

}  // namespace phalanx::codes
