// The speed rows, by subject; speed_rows() joins them.
#pragma once

#include <span>

#include "doctor/catalogue.h"

namespace phalanx::doctor {

std::span<const Row> host_speed_rows();  // CPUs, threads, NUMA, hosts against each other, sockets

}  // namespace phalanx::doctor
