// codes/rules/*.yaml → the table behind config_rules() of src/codes/config_rule.h, as C++.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/result.h"

namespace phalanx::codes {

// `codes`: the folder that has rules/ and values/. `names`: the codes that have a page.
base::Result<std::string> compile_rules(const std::filesystem::path& codes, const std::set<std::string>& names);

}  // namespace phalanx::codes
