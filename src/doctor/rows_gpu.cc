#include "doctor/catalogue.h"

namespace doctor {

std::span<const Row> gpu_rows() { return {}; }

}  // namespace doctor
