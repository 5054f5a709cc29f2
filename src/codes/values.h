// Tables of values that other software uses, as data: codes/values/<name>.tsv, compiled like the pages, and unpacked at the first lookup.
//
// What a column holds is written in the table's first line, and the compiler checks it (codes/value_table.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace phalanx::codes {

using ValueRow = std::span<const std::string_view>;  // one cell for each column; the first is the key

struct ValueTable {
  std::string_view name;  // "xid"
  size_t columns;
  std::span<const std::string_view> cells;  // row by row

  size_t size() const { return cells.size() / columns; }
  ValueRow row(size_t i) const { return cells.subspan(i * columns, columns); }
  // The first row with this key; empty if there is none.
  ValueRow find(std::string_view key) const;
};

std::span<const ValueTable> value_tables();
// A table that the program names itself; one that is missing is a bug (PHALANX_CHECK).
const ValueTable& values(std::string_view name);
// The number in a cell of a column of kind int.
int64_t number(std::string_view cell);

}  // namespace phalanx::codes
