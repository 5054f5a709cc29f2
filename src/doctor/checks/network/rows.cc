#include <vector>

#include "doctor/checks/network/parts.h"

namespace phalanx::doctor {

std::span<const Row> network_rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> rows;
    for (auto* part : {network_mesh_rows, network_choice_rows, network_ifname_rows, network_host_rows, network_link_rows})
      for (const Row& row : part()) rows.push_back(row);
    return rows;
  }();
  return all;
}

}  // namespace phalanx::doctor
