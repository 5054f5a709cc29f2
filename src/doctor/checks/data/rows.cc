// Data set, loader, checkpoint and memory hints.
#include <vector>

#include "doctor/checks/command/rows.h"

namespace phalanx::doctor {

std::span<const Row> data_rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> rows;
    for (std::span<const Row> part : {data_script_rows(), data_config_rows()}) rows.insert(rows.end(), part.begin(), part.end());
    return rows;
  }();
  return all;
}

}  // namespace phalanx::doctor
