// The groups "command" and "data" by kind of file; doctor/checks/command/rows.cc and doctor/checks/data/rows.cc join them.
#pragma once

#include <span>

#include "doctor/catalogue.h"

namespace phalanx::doctor {

std::span<const Row> shell_rows();
std::span<const Row> launch_rows();
std::span<const Row> command_file_rows();
std::span<const Row> accelerate_rows();
std::span<const Row> deepspeed_rows();
std::span<const Row> llamafactory_rows();
std::span<const Row> lightning_rows();
std::span<const Row> python_rows();
std::span<const Row> data_script_rows();
std::span<const Row> data_config_rows();

}  // namespace phalanx::doctor
