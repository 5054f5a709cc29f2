#include "codes/values.h"

#include <charconv>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "codes/packed.h"

namespace phalanx::codes {

namespace {

// The tables' rows, one after another: the name of the table, then its cells.
struct Tables {
  std::vector<std::string_view> cells;  // of all tables
  std::vector<ValueTable> tables;
};

Tables read_tables() {
  struct Part {
    std::string_view name;
    size_t columns, from;
  };
  Tables out;
  std::vector<Part> parts;
  for (std::string_view row : base::split_lines(unpack(packed_values()))) {
    const std::vector<std::string_view> cells = base::split(row, '\t');
    if (parts.empty() || parts.back().name != cells[0]) parts.push_back({cells[0], cells.size() - 1, out.cells.size()});
    out.cells.insert(out.cells.end(), cells.begin() + 1, cells.end());
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t end = i + 1 < parts.size() ? parts[i + 1].from : out.cells.size();
    out.tables.push_back({parts[i].name, parts[i].columns, {out.cells.data() + parts[i].from, end - parts[i].from}});
  }
  return out;
}

}  // namespace

std::span<const ValueTable> value_tables() {
  static const Tables all = read_tables();
  return all.tables;
}

ValueRow ValueTable::find(std::string_view key) const {
  for (size_t i = 0; i < size(); ++i)
    if (row(i)[0] == key) return row(i);
  return {};
}

const ValueTable& values(std::string_view name) {
  const ValueTable* found = nullptr;
  for (const ValueTable& table : value_tables())
    if (table.name == name) found = &table;
  PHALANX_CHECK(found != nullptr);
  return *found;
}

int64_t number(std::string_view cell) {
  int64_t value = 0;
  PHALANX_CHECK(std::from_chars(cell.data(), cell.data() + cell.size(), value).ptr == cell.data() + cell.size());
  return value;
}

}  // namespace phalanx::codes
