// What of a long log goes into a report: its beginning and its end.
#pragma once

#include <cstddef>
#include <string>

namespace cli {

// The first quarter and the last three quarters of a file that is larger than `most`, with a line between that says so. Both parts are
// whole lines: of a secret that is cut apart from its name, or cut short, neither piece could be known for what it is.
std::string excerpt_of(const std::string& path, size_t most);

}  // namespace cli
