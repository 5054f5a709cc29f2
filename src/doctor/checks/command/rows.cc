// What the user wrote: scripts, launch lines, configurations.
#include "doctor/checks/command/rows.h"

#include <vector>

namespace phalanx::doctor {

std::span<const Row> command_rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> rows;
    for (std::span<const Row> part : {shell_rows(), launch_rows(), command_file_rows(), accelerate_rows(), deepspeed_rows(),
                                      llamafactory_rows(), lightning_rows(), python_rows()})
      rows.insert(rows.end(), part.begin(), part.end());
    return rows;
  }();
  return all;
}

}  // namespace phalanx::doctor
