// What of a long log goes into a report: its beginning and its end.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cli {

// The whole file if it has at most `most` bytes; else the first quarter of `most` and the last three quarters, with a line between them
// that says how much is missing. Only whole lines, and no part of a PEM block: of a secret that is cut apart from its name, or cut short,
// no piece could be recognized. Empty if the file cannot be read, is not a regular one, or is reached through a link.
std::string excerpt_of(const std::string& run_folder, std::string_view name, size_t most);

}  // namespace cli
