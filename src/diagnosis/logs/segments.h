// The lines of a block of a log, which end with "\n" or "\r": a progress bar's states are lines of their own. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace phalanx::diagnosis {

// Where the line that holds offset `from` ends, before its end character; where the one that holds `at` begins.
size_t segment_end(std::string_view text, size_t from);
size_t segment_begin(std::string_view text, size_t at);

// Whether the line before offset `begin` (or before one empty line) is "Exception ignored in …", of which Python tells and goes on, mostly
// while it ends; or "… failed, retrying 1/3" (not 3/3).
bool ignored_before(std::string_view text, size_t begin);

// Of the lines before offset `begin` the nearest time, as find_time() reads it: a line without one was written about then.
std::optional<int64_t> time_before(std::string_view text, size_t begin);

// Escape sequences out, line by line: one that does not end takes no more than its line.
std::string without_escapes(std::string_view block);

}  // namespace phalanx::diagnosis
