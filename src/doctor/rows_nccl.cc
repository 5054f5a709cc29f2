#include "doctor/catalogue.h"

namespace doctor {

std::span<const Row> nccl_rows() { return {}; }

}  // namespace doctor
