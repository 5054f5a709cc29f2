#include "doctor/checks/software/parts.h"

namespace phalanx::doctor {

std::span<const Row> software_rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> rows;
    for (auto* part : {program_rows, package_rows, library_rows, environment_rows})
      for (const Row& row : part()) rows.push_back(row);
    return rows;
  }();
  return all;
}

}  // namespace phalanx::doctor
