#include "doctor/catalogue.h"

namespace doctor {

std::span<const Row> network_rows() { return {}; }

}  // namespace doctor
