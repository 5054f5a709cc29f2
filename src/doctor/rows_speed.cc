#include "doctor/catalogue.h"

namespace doctor {

std::span<const Row> speed_rows() { return {}; }

}  // namespace doctor
