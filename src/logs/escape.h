// Terminal escape sequences inside text (ECMA-48: CSI, OSC and its relatives, two-byte escapes). Pure.
#pragma once

#include <string>
#include <string_view>

namespace phalanx::logs {

// Length in bytes of the escape sequence at the start of `text`, which begins with ESC. A sequence that does not end
// within `text` has the length of the whole text, at most kMaxEscapeBytes; a lone ESC has length 1.
inline constexpr size_t kMaxEscapeBytes = 4096;
size_t escape_length(std::string_view text);

// Whether the sequence of exactly these bytes only sets colours and faces: ESC [ … m.
bool is_colour(std::string_view sequence);

// `text` without escape sequences.
std::string strip_escapes(std::string_view text);

// How many rows the cursor-up sequences (ESC [ n A) at the very end of `text` go up, and takes them off. 0: there are none.
size_t take_cursor_ups(std::string_view& text);

}  // namespace phalanx::logs
