// A table of codes/values/ as text: tab-separated cells.
//
//   # comment, also between rows
//   number:int	code:code
//   79	GPU-XID-BUS
//
// The first line that is no comment names the columns and their kinds: int, code (one that has a page), text (may be empty), word (not
// empty, no blanks), or the words that are allowed: kind:number|text. Rows are unique. Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::codes {

struct ParsedTable {
  size_t columns = 0;
  std::vector<std::string> cells;  // row by row
};

// Error (kConfig): "line 7: …", where a row is not whole, is there twice, or holds what its column may not.
base::Result<ParsedTable> parse_value_table(std::string_view text, const std::set<std::string>& codes);

}  // namespace phalanx::codes
