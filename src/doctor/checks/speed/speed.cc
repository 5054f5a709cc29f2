#include "doctor/checks/speed/speed.h"

#include "doctor/views/gpu_view.h"

namespace phalanx::doctor {

std::span<const Row> speed_rows() {
  static const std::vector<Row> kSpeedRows = joined({gpu_speed_rows(), host_speed_rows()});
  return kSpeedRows;
}

}  // namespace phalanx::doctor
