// codes/catalogue/*.tsv, and the answers of codes/annotations/*.tsv → the tables behind src/codes/catalogue.h, compressed, as C++.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/result.h"
#include "compile_codes/annotations.h"

namespace phalanx::codes {

base::Result<std::string> compile_catalogue(const std::filesystem::path& folder, const AnnotatedSources& annotations);

}  // namespace phalanx::codes
