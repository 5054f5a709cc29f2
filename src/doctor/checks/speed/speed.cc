#include "doctor/rows_speed.h"

#include "doctor/gpu_view.h"

namespace doctor {

std::span<const Row> speed_rows() {
  static const std::vector<Row> kSpeedRows = joined({gpu_speed_rows(), host_speed_rows()});
  return kSpeedRows;
}

}  // namespace doctor
