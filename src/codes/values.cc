#include "codes/values.h"

#include <charconv>

#include "base/check.h"

namespace phalanx::codes {

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
