// Lines of ranks, dressed for showing: a prefix before each, and nothing in them that could move the cursor. Pure.
#pragma once

#include <string>
#include <string_view>

namespace phalanx::view {

// What of a rank's control characters is kept. "\n" and tabs always are.
struct Controls {
  bool colours = false;   // ESC [ … m; a line that has any ends with a reset
  bool terminal = false;  // false: only escape sequences are taken out. true: every other control character as well
  bool utf8 = true;       // of a terminal: whether C1 controls come as U+0080–U+009F, or else as single bytes
};

// Appends every line of `lines` (whole lines) with `prefix` before it. One memchr and one memcpy a line as long as the
// text has no control characters.
void append_prefixed(std::string& out, std::string_view prefix, std::string_view lines, const Controls& controls);

// "[gpu02:5] ", in the colour of the host (by its position in the list). mark: of stderr, "[gpu02:5!] ".
std::string rank_prefix(std::string_view host, int rank, size_t host_number, bool colour, bool mark);

}  // namespace phalanx::view
