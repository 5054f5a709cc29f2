#include "doctor/checks/nccl/parts.h"

namespace phalanx::doctor {

std::span<const Row> nccl_rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> rows;
    for (auto* part : {nccl_library_rows, nccl_name_rows, nccl_transport_rows, nccl_habit_rows, nccl_conf_rows})
      for (const Row& row : part()) rows.push_back(row);
    return rows;
  }();
  return all;
}

}  // namespace phalanx::doctor
