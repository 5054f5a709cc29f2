// Files of environment variables: .env, .deepspeed_env. Grammar and limits: docs/formats/env-file.md. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace phalanx::cli {

constexpr size_t kLargestEnvFile = 4u << 20;  // bytes
constexpr size_t kMostEnvVariables = 4'096;   // in one file
constexpr size_t kLongestEnvValue = 130'815;  // bytes; with the longest name, '=' and the zero just what exec takes (MAX_ARG_STRLEN)

// [A-Za-z_][A-Za-z0-9_]*, at most 255 bytes.
bool is_variable_name(std::string_view name);

// Variables in the order of the file; of a name given twice both are there, and the later counts. `path` is only for
// naming the place in errors: kConfig, `path:line: …`.
base::Result<std::vector<std::pair<std::string, std::string>>> parse_env_file(std::string_view text, std::string_view path);

}  // namespace phalanx::cli
