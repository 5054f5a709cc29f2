#include <vector>

#include "doctor/views/infiniband_view.h"

namespace phalanx::doctor {

std::span<const Row> infiniband_rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> rows;
    for (auto* part : {infiniband_port_rows, infiniband_use_rows})
      for (const Row& row : part()) rows.push_back(row);
    return rows;
  }();
  return all;
}

}  // namespace phalanx::doctor
