#include "doctor/catalogue.h"

namespace doctor {

std::span<const Row> limits_rows() { return {}; }

}  // namespace doctor
