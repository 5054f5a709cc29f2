#include "doctor/catalogue.h"

#include <strings.h>

#include "doctor/checks/rows.h"

namespace phalanx::doctor {

void Row::look(const Situation& situation, Findings& findings) const {
  if (check) return check(situation, findings);
  for (size_t h = 0; h < situation.hosts.size(); ++h)
    if (situation.hosts[h].probed) check_host(situation, h, situation.hosts[h], findings);
}

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
