// One value of one flag, held against its row of the table.
#pragma once

#include <chrono>
#include <string_view>

#include "base/result.h"
#include "cli/flags/flags.h"

namespace phalanx::cli {

// Error (kUsage): names the flag as typed and the value.
base::Status check_value(const FlagRow& row, std::string_view typed, std::string_view value);

// The typed value, of text that check_value has accepted.
int int_value(std::string_view value);
std::chrono::milliseconds duration_value(std::string_view value);

}  // namespace phalanx::cli
