// The rows of NCCL by what they look at; doctor/checks/nccl/rows.cc puts them together.
#pragma once

#include <span>

#include "doctor/catalogue.h"

namespace phalanx::doctor {

std::span<const Row> nccl_name_rows();       // names and values of variables
std::span<const Row> nccl_transport_rows();  // what is switched off, contradictions
std::span<const Row> nccl_habit_rows();      // debugging left on, watchdog off
std::span<const Row> nccl_library_rows();    // which libnccl
std::span<const Row> nccl_conf_rows();       // conf files, differences between hosts

}  // namespace phalanx::doctor
