// Text broken into lines that fit a terminal. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace phalanx::base {

// Lines of at most `columns` columns. Breaks at blanks, and beside characters two columns wide (Chinese is written
// without blanks), but never in front of closing punctuation nor behind opening punctuation. A word that is wider than a
// line stands alone on a line that is too long. A newline in the text starts a new line. Never returns no line.
std::vector<std::string> wrap(std::string_view text, size_t columns);

}  // namespace phalanx::base
