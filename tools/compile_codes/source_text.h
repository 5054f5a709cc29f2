// What the parts of compile_codes share: reading files, and text as C++.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::codes {

base::Error wrong(const std::filesystem::path& path, const std::string& what);  // kConfig
base::Result<std::string> read_file(const std::filesystem::path& path);
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder);  // sorted by name

// A C++ string literal, a line of text a line.
std::string literal(std::string_view text);

}  // namespace phalanx::codes
