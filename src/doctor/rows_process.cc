#include "doctor/catalogue.h"

namespace doctor {

std::span<const Row> process_rows() { return {}; }

}  // namespace doctor
