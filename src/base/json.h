// JSON through nlohmann-json, with exceptions off: parse() returns a Result, getters return optionals. Touch a
// base::Json from outside only through these; its own accessors abort on a wrong type.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::base {

using Json = nlohmann::ordered_json;

// At most `max_bytes` and 64 levels; duplicate keys keep the last. Error: kConfig.
Result<Json> parse_json(std::string_view text, size_t max_bytes = 16 << 20);
// Compact, one line. Bytes that are not UTF-8 become U+FFFD.
std::string to_text(const Json& json, int indent = -1);

std::optional<std::string> get_string(const Json& object, std::string_view key);
std::optional<int64_t> get_int(const Json& object, std::string_view key);
std::optional<double> get_number(const Json& object, std::string_view key);
std::optional<bool> get_bool(const Json& object, std::string_view key);
// An empty list where there is none. Into `object`, which must outlive it.
const Json& get_list(const Json& object, std::string_view key);
std::vector<std::string> get_strings(const Json& object, std::string_view key);  // of that list; what is no string is left out

}  // namespace phalanx::base
