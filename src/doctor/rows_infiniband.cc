#include "doctor/catalogue.h"

namespace doctor {

std::span<const Row> infiniband_rows() { return {}; }

}  // namespace doctor
