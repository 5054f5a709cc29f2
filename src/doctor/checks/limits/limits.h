// The limit rows, by subject; limits_rows() joins them.
#pragma once

#include <span>

#include "doctor/catalogue.h"

namespace phalanx::doctor {

std::span<const Row> process_limit_rows();  // files, processes, locked memory, stack
std::span<const Row> machine_limit_rows();  // control groups, CPUs, memory, the kernel's settings

}  // namespace phalanx::doctor
