#include "doctor/catalogue.h"

#include <strings.h>

#include "doctor/checks/rows.h"

namespace phalanx::doctor {

std::vector<const Row*> catalogue() {
#define PHALANX_TABLE(name) name##_rows,
  static constexpr std::span<const Row> (*kTables[])() = {PHALANX_ROWS(PHALANX_TABLE)};
#undef PHALANX_TABLE
  std::vector<const Row*> all;
  for (auto* rows : kTables)
    for (const Row& row : rows()) all.push_back(&row);
  return all;
}

const Row* find_row(std::string_view code) {
  for (const Row* row : catalogue())
    if (row->code.size() == code.size() && ::strncasecmp(row->code.data(), code.data(), code.size()) == 0) return row;
  return nullptr;
}

}  // namespace phalanx::doctor
