// The line of an instruction, from the table that CPython compiles into a code object. Pure; the table may hold any bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace phalanx::machine {

enum class LineTable : uint8_t {
  kLnotab,     // up to 3.9: co_lnotab, Objects/lnotab_notes.txt
  kRanges,     // 3.10: co_linetable, Objects/lnotab_notes.txt
  kLocations,  // from 3.11: co_linetable, Objects/locations.md (InternalDocs/code_objects.md)
};

// at: bytes from the start of the code; negative: before its first instruction, which is on first_line. Nothing: the instruction has no
// line, or the table does not reach it.
std::optional<int> line_at(LineTable kind, std::string_view table, int first_line, int64_t at);

}  // namespace phalanx::machine
